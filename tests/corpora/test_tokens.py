"""Token rows against plain calls of the tokenizer, and that texts are tokenised only once."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import (
    BertJapaneseTokenizer,
    ByT5Tokenizer,
    PhobertTokenizer,
    PreTrainedTokenizerFast,
)

from aang_core import ConfigError, DataError, Example, ModelError, ReadReport
from tests.corpora.conftest import SENTENCES
from tests.support.data import (
    SingleLabel,
    TokenRows,
    token_cache,
    tokenize,
    tokenizer_digest,
    vocabulary,
)

SINGLE = [Example(text, label="xy"[i % 2]) for i, text in enumerate(SENTENCES)]
PAIRS = [Example(a, b, "x") for a, b in itertools.permutations(SENTENCES[:3], 2)]


@pytest.fixture(params=["bert", "roberta"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    chosen = request.getfixturevalue(request.param)
    assert isinstance(chosen, PreTrainedTokenizerFast)
    return chosen


@pytest.mark.parametrize("examples", [SINGLE, PAIRS, [SINGLE[0], *PAIRS, SINGLE[1]]])
@pytest.mark.parametrize("max_length", [7, 16, 128])
def test_rows_are_what_the_tokenizer_gives(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast, examples: list[Example], max_length: int
) -> None:
    rows = tokenize(examples, tokenizer, max_length=max_length, cache=tmp_path)
    batch = rows.rows(torch.arange(len(examples)))
    cut = 0
    for i, example in enumerate(examples):
        plain = tokenizer(
            example.text, example.text_pair, truncation="longest_first", max_length=max_length
        )
        length = len(plain["input_ids"])
        assert rows.lengths[i] == length
        assert batch.ids[i, :length].tolist() == plain["input_ids"]
        assert batch.real[i].tolist() == [True] * length + [False] * (batch.ids.shape[1] - length)
        assert (batch.ids[i, length:] == tokenizer.pad_token_id).all()
        special = torch.isin(batch.ids[i], torch.tensor(tokenizer.all_special_ids))
        assert torch.equal(batch.ordinary[i], batch.real[i] & ~special)
        if batch.token_types is not None:
            assert batch.token_types[i, :length].tolist() == plain["token_type_ids"]
            assert not batch.token_types[i, length:].any()
        cut += len(tokenizer(example.text, example.text_pair)["input_ids"]) > max_length
    assert rows.truncated == cut
    assert (batch.token_types is None) == ("token_type_ids" not in tokenizer.model_input_names)


def test_types_and_shapes(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    rows = tokenize(SINGLE, bert, max_length=128, cache=tmp_path, task_type=SingleLabel(("x", "y")))
    chosen = torch.tensor([3, 0, 3])
    batch = rows.rows(chosen)
    assert len(rows) == 5
    assert rows.lengths.dtype == torch.int64
    # Padded to the longest of the batch, not of the source.
    assert batch.ids.shape == (3, int(rows.lengths[chosen].max()))
    assert batch.ids.dtype == torch.int64
    assert batch.real.dtype == batch.ordinary.dtype == torch.bool
    assert batch.labels is not None
    assert batch.labels.tolist() == [1, 0, 1]
    assert batch.token_types is not None
    assert batch.token_types.dtype == torch.int64
    assert torch.equal(batch.ids[0], batch.ids[2])


def test_special_tokens_in_the_text_are_not_ordinary(
    tmp_path: Path, bert: PreTrainedTokenizerFast
) -> None:
    rows = tokenize([Example("a [MASK] b [SEP] c")], bert, max_length=32, cache=tmp_path)
    batch = rows.rows(torch.tensor([0]))
    special = torch.isin(batch.ids, torch.tensor(bert.all_special_ids))
    assert int(special.sum()) == 4
    assert not batch.ordinary[special].any()


def test_without_label_ids_there_are_no_labels(
    tmp_path: Path, bert: PreTrainedTokenizerFast
) -> None:
    rows = tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    assert rows.labels is None
    assert rows.rows(torch.tensor([0])).labels is None


@pytest.mark.parametrize("label", [None, "z"])
def test_a_label_that_is_no_class(
    tmp_path: Path, bert: PreTrainedTokenizerFast, label: str | None
) -> None:
    examples = [*SINGLE, Example("more", label=label)]
    with pytest.raises(DataError, match=f"label {label!r}; the classes are 'x', 'y'"):
        tokenize(examples, bert, max_length=16, cache=tmp_path, task_type=SingleLabel(("x", "y")))


def test_cut_texts_are_counted(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    report = ReadReport()
    examples = [Example("tree"), Example("tree " * 50), Example("tree " * 60)]
    rows = tokenize(examples, bert, max_length=16, cache=tmp_path, report=report, source="task")
    assert rows.truncated == 2
    assert report.lines() == [
        "2 × text longer than 16 tokens, cut; task has 3 texts (first: text 2)"
    ]


def test_texts_that_no_tokenizer_takes_are_mended(
    tmp_path: Path, roberta: PreTrainedTokenizerFast
) -> None:
    report = ReadReport()
    rows = tokenize(
        [Example("a\ud800b", "c\udfff")], roberta, max_length=32, cache=tmp_path, report=report
    )
    ids = rows.rows(torch.tensor([0])).ids[0]
    assert roberta.decode(ids, skip_special_tokens=True) == "a\ufffdbc\ufffd"
    assert sum(report.counts.values()) == 2


def test_tokenizers_written_in_python(tmp_path: Path) -> None:
    tokenizer = ByT5Tokenizer()
    rows = tokenize(
        [Example("abc"), Example("abcdefghij")], tokenizer, max_length=8, cache=tmp_path
    )
    assert rows.lengths.tolist() == [4, 8]
    assert rows.truncated == 1
    assert rows.rows(torch.tensor([0])).ids[0].tolist() == tokenizer("abc")["input_ids"]
    mixed = tokenize([Example("abc"), Example("a", "bc")], tokenizer, max_length=8, cache=tmp_path)
    assert mixed.rows(torch.tensor([1])).ids[0].tolist() == tokenizer("a", "bc")["input_ids"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each call of the encoder got."""
    seen: list[int] = []
    encode: Callable[..., Any] = token_cache.encode_batch

    def counted(batch: Any, *more: Any) -> Any:
        seen.append(len(batch))
        return encode(batch, *more)

    monkeypatch.setattr(token_cache, "encode_batch", counted)
    return seen


def same(first: TokenRows, second: TokenRows) -> bool:
    everything = torch.arange(len(first))
    return torch.equal(first.rows(everything).ids, second.rows(everything).ids)


def test_the_second_time_nothing_is_tokenised(
    tmp_path: Path, bert: PreTrainedTokenizerFast, calls: list[int]
) -> None:
    first = tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    assert calls == [5]
    # The state that any use of a tokenizer leaves behind must not matter.
    bert("x", truncation=True, max_length=3, padding="max_length")
    second = tokenize(
        iter(SINGLE), bert, max_length=16, cache=tmp_path, task_type=SingleLabel(("x", "y"))
    )
    assert calls == [5]
    assert same(first, second)
    assert second.truncated == first.truncated


@pytest.mark.parametrize("change", ["text", "pair", "border", "length", "tokenizer"])
def test_whatever_ids_depend_on_makes_them_be_tokenised_anew(
    tmp_path: Path,
    bert: PreTrainedTokenizerFast,
    roberta: PreTrainedTokenizerFast,
    calls: list[int],
    change: str,
) -> None:
    tokenize([Example("ab"), Example("c")], bert, max_length=16, cache=tmp_path)
    tokenize(
        {
            "text": [Example("ab"), Example("d")],
            "pair": [Example("ab"), Example("c", "c")],
            "border": [Example("a"), Example("bc")],
        }.get(change, [Example("ab"), Example("c")]),
        roberta if change == "tokenizer" else bert,
        max_length=17 if change == "length" else 16,
        cache=tmp_path,
    )
    assert calls == [2, 2]


def test_a_special_token_may_be_text(
    tmp_path: Path, bert: PreTrainedTokenizerFast, calls: list[int]
) -> None:
    """``split_special_tokens`` is not in the file of a fast tokenizer."""
    examples = [Example("ab [SEP] c")]
    found = []
    for split in (False, True):
        bert.split_special_tokens = split
        rows = tokenize(examples, bert, max_length=32, cache=tmp_path)
        found.append(rows.rows(torch.tensor([0])).ids[0].tolist())
        assert found[-1] == bert(examples[0].text)["input_ids"]
    assert found[0] != found[1]
    assert calls == [1, 1]


def japanese(folder: Path, **settings: Any) -> BertJapaneseTokenizer:
    """A tokenizer written in Python, loaded from a folder."""
    folder.mkdir(exist_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "a", "b", "##b"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    settings = {
        "tokenizer_class": "BertJapaneseTokenizer",
        "word_tokenizer_type": "basic",
    } | settings
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    loaded = BertJapaneseTokenizer.from_pretrained(folder)
    assert isinstance(loaded, BertJapaneseTokenizer)
    return loaded


def test_a_setting_of_a_tokenizer_written_in_python_is_corrected(
    tmp_path: Path, calls: list[int]
) -> None:
    """In the same folder and with the same vocabulary; another folder alone changes nothing."""
    found = []
    for folder, lower in (("a", False), ("a", True), ("b", True)):
        tokenizer = japanese(tmp_path / folder, do_lower_case=lower)
        rows = tokenize([Example("A b")], tokenizer, max_length=8, cache=tmp_path / "cache")
        found.append(rows.rows(torch.tensor([0])).ids[0].tolist())
    assert found == [[2, 5, 7, 3], [2, 6, 7, 3], [2, 6, 7, 3]]
    assert calls == [1, 1]


def test_merges_are_part_of_a_tokenizer(tmp_path: Path) -> None:
    """With the same vocabulary, they make other tokens of a word."""
    digests = []
    (tmp_path / "vocab.txt").write_text("ab 1\nbc 1\na 1\nb 1\nc 1\n")
    for merges in ("a b 1\nb c 1\n", "b c 1\na b 1\n"):
        (tmp_path / "bpe.codes").write_text(merges)
        made = PhobertTokenizer(str(tmp_path / "vocab.txt"), str(tmp_path / "bpe.codes"))
        digests.append(tokenizer_digest(made))
    assert digests[0] != digests[1]


@pytest.mark.parametrize("left", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_damaged_cache_file_is_made_again(
    tmp_path: Path, bert: PreTrainedTokenizerFast, calls: list[int], left: float
) -> None:
    first = tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes(content[: int(left * len(content))])
    assert same(first, tokenize(SINGLE, bert, max_length=16, cache=tmp_path))
    assert calls == [5, 5]


@pytest.mark.parametrize("place", range(7))
def test_a_flipped_bit_in_the_cache_is_told(
    tmp_path: Path,
    bert: PreTrainedTokenizerFast,
    calls: list[int],
    caplog: pytest.LogCaptureFixture,
    place: int,
) -> None:
    """Most such files can still be read, and would be other texts."""
    first = tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[(2 * place + 1) * len(content) // 14] ^= 1 << place
    file.write_bytes(content)
    assert same(first, tokenize(SINGLE, bert, max_length=16, cache=tmp_path))
    assert calls == [5, 5]
    assert "the cached tokens are damaged, and are made anew" in caplog.text
    assert same(first, tokenize(SINGLE, bert, max_length=16, cache=tmp_path))
    assert calls == [5, 5]


def test_the_cache_is_one_whole_file(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".safetensors"]


@pytest.mark.full
def test_another_process_finds_what_is_stored(
    tmp_path: Path, roberta: PreTrainedTokenizerFast
) -> None:
    """Nothing in the name of a cache file depends on the order of a set."""
    roberta.save_pretrained(tmp_path / "tokenizer")
    program = (
        "import sys; from pathlib import Path; from transformers import PreTrainedTokenizerFast;"
        "from aang.corpora.tokens import tokenize;"
        "from aang_core.objectives.stages import Example;"
        "tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1] + '/tokenizer');"
        "tokenize([Example('a', 'b')], tokenizer, max_length=16, cache=Path(sys.argv[1]))"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


def test_a_cache_that_cannot_be_written(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="AANG_CACHE"):
        tokenize(SINGLE, bert, max_length=16, cache=tmp_path / "file")


def test_a_cache_that_can_only_be_read_serves_what_is_in_it(
    tmp_path: Path, bert: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tokenize(SINGLE, bert, max_length=16, cache=tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert same(first, tokenize(SINGLE, bert, max_length=16, cache=tmp_path))
    with pytest.raises(ConfigError, match="AANG_CACHE"):
        tokenize(SINGLE[:3], bert, max_length=16, cache=tmp_path)


def test_no_texts(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DataError, match="s2orc: there is no text"):
        tokenize([], bert, max_length=16, cache=tmp_path, source="s2orc")


@pytest.mark.parametrize(("examples", "least"), [(SINGLE, 3), (PAIRS, 5)])
def test_too_little_room_for_text(
    tmp_path: Path, bert: PreTrainedTokenizerFast, examples: list[Example], least: int
) -> None:
    tokenize(examples, bert, max_length=least, cache=tmp_path)
    with pytest.raises(ConfigError, match=f"--max-length {least - 1}"):
        tokenize(examples, bert, max_length=least - 1, cache=tmp_path)


def test_no_padding_token(tmp_path: Path, bert: PreTrainedTokenizerFast) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bert.backend_tokenizer)
    with pytest.raises(ModelError, match="padding token"):
        tokenize(SINGLE, tokenizer, max_length=16, cache=tmp_path)


@given(texts=st.lists(st.text(alphabet="ab [MASK]🙂", max_size=12), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_document_statistics_count_texts_and_not_occurrences(
    tmp_path_factory: pytest.TempPathFactory, bert: PreTrainedTokenizerFast, texts: list[str]
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    rows = tokenize([Example(text) for text in texts], bert, max_length=64, cache=cache)
    expected = torch.zeros(len(bert), dtype=torch.int64)
    for text in texts:
        for token in set(bert(text)["input_ids"]) - set(bert.all_special_ids):
            expected[token] += 1
    statistics = rows.document_statistics()
    assert statistics.documents == len(texts)
    assert torch.equal(statistics.document_frequency, expected)


def test_document_statistics_are_computed_once_and_in_pieces(
    tmp_path: Path, roberta: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows() -> TokenRows:
        return tokenize(SINGLE, roberta, max_length=64, cache=tmp_path)

    whole = rows().document_statistics()
    monkeypatch.setattr("aang.corpora.tokens.STATISTICS_ROWS", 2)
    pieces = rows()
    assert torch.equal(pieces.document_statistics().document_frequency, whole.document_frequency)
    assert pieces.document_statistics() is pieces.document_statistics()


def test_the_vocabulary_has_no_special_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    words = vocabulary(tokenizer)
    assert words.size == len(tokenizer)
    assert words.mask_id == tokenizer.mask_token_id
    expected = sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids))
    assert words.ordinary.tolist() == expected
    assert words.ordinary.dtype == torch.int64


def test_added_special_tokens_are_special(bert: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    bert.save_pretrained(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<entity>"]})
    tokenizer.add_tokens(["newword"])
    words = vocabulary(tokenizer)
    assert words.size == len(bert) + 2
    ordinary = words.ordinary.tolist()
    assert tokenizer.convert_tokens_to_ids("<entity>") not in ordinary
    assert tokenizer.convert_tokens_to_ids("newword") in ordinary


def test_no_mask_token(bert: PreTrainedTokenizerFast) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bert.backend_tokenizer, pad_token="[PAD]")
    with pytest.raises(ModelError, match="no mask token"):
        vocabulary(tokenizer)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_text_of_each_token_is_what_transformers_decodes(
    request: pytest.FixtureRequest, family: str
) -> None:
    tokenizer: PreTrainedTokenizerFast = request.getfixturevalue(family)
    made = vocabulary(tokenizer)
    texts = made.decode()
    before = next(i for i in made.ordinary.tolist() if tokenizer.decode([i]).isalpha())
    alone = tokenizer.decode([before])
    for token in made.ordinary.tolist():
        both = tokenizer.decode([before, token], clean_up_tokenization_spaces=False)
        assert texts[token] == both.removeprefix(alone)


def test_a_vocabulary_of_a_hundred_thousand_takes_a_second() -> None:
    """Without a token of letters alone, for which all of them were decoded, one by one."""
    words = ["[PAD]", "[UNK]", "[MASK]", *(f"w{i}" for i in range(100_000))]
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(ids, unk_token="[UNK]")),
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )
    begin = time.process_time()
    assert vocabulary(tokenizer).decode()[5].strip() == "w2"
    assert time.process_time() - begin < 4
