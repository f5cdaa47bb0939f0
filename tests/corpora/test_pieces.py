"""Long texts in pieces, and sources that are read repeatedly."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch
from aang.assembly.stream_rows import StreamRows
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import BertTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from aang_core import DataError, Example
from tests.docs.documents import ROOT, without_code
from tests.support.data import (
    Cutter,
    PieceStream,
    RepeatedTexts,
    TokenRows,
    digest,
    pieces_of,
    tokenize,
)
from tests.support.model import load_tokenizer

DEMO_ENCODER = ROOT / "plugins" / "aang" / "aang" / "assets" / "demo-encoder"
PARAGRAPHS = [
    " ".join(paragraph.split())
    for paragraph in without_code(ROOT / "docs" / "plugins.md").split("\n\n")
]


def byte_level() -> PreTrainedTokenizerBase:
    """RoBERTa's kind, of few merges, so that a character of another script is several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        PARAGRAPHS,
        trainers.BpeTrainer(
            vocab_size=500,
            special_tokens=["<pad>", "<mask>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", mask_token="<mask>"
    )


@pytest.fixture(scope="module", params=["demo", "byte-level"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerBase:
    return load_tokenizer(str(DEMO_ENCODER)) if request.param == "demo" else byte_level()


TEXTS = {
    "paragraphs": " ".join(PARAGRAPHS[:30]),
    "no spaces": "読み書きのための言語モデルは文脈から単語を予測する。" * 12,
    "one long word": "x" * 700,
    "emoji": "🙂🙃" * 90,
    "a word and a long one": "a " + "é" * 300 + " b c d",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("max_length", [5, 16, 64])
def test_pieces_are_the_text_and_fit(
    tokenizer: PreTrainedTokenizerBase, name: str, max_length: int
) -> None:
    text = TEXTS[name]
    pieces = [piece.text for piece in Cutter(tokenizer, max_length).pieces(Example(text))]
    assert "".join("".join(pieces).split()) == "".join(text.split())
    for piece in pieces:
        fits = len(tokenizer(piece)["input_ids"]) <= max_length
        assert fits or len(piece) == 1, piece


def test_words_stay_whole(tokenizer: PreTrainedTokenizerBase) -> None:
    text = TEXTS["paragraphs"]
    pieces = [piece.text for piece in Cutter(tokenizer, 64).pieces(Example(text))]
    assert len(pieces) > 5
    assert " ".join(pieces).split() == text.split()


def test_pieces_are_well_filled(tokenizer: PreTrainedTokenizerBase) -> None:
    pieces = list(Cutter(tokenizer, 64).pieces(Example(TEXTS["paragraphs"])))
    lengths = [len(tokenizer(piece.text)["input_ids"]) for piece in pieces[:-1]]
    assert sum(lengths) / len(lengths) > 0.85 * 64


def test_a_tokenizer_that_tells_no_places(tmp_path: Path) -> None:
    """One written in Python does not say which characters a token is of."""
    words = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]

    class Slow(BertTokenizer):
        """The same tokens, but no places."""

        @property
        def is_fast(self) -> bool:
            return False

    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    slow = Slow(vocab={token: i for i, token in enumerate(vocabulary)})
    text = "the quick brown fox jumps over the lazy dog " * 8
    pieces = [piece.text for piece in Cutter(slow, 16).pieces(Example(text))]
    assert " ".join(pieces).split() == text.split()
    assert all(len(slow(piece)["input_ids"]) <= 16 for piece in pieces)


def test_pairs_stay_whole(tokenizer: PreTrainedTokenizerBase) -> None:
    pair = Example(TEXTS["paragraphs"], "and a second text")
    assert list(Cutter(tokenizer, 16).pieces(pair)) == [pair]


def numbered(number: int) -> Iterator[Example]:
    yield from (Example(f"text {i} of all passes") for i in range(7))


def test_texts_come_again() -> None:
    stream = RepeatedTexts(numbered)
    texts = [next(stream).text for _ in range(20)]
    assert texts == [f"text {i % 7} of all passes" for i in range(20)]


@pytest.mark.parametrize("taken", [0, 1, 6, 7, 8, 14, 17])
def test_a_stream_goes_on_from_a_position(tokenizer: PreTrainedTokenizerBase, taken: int) -> None:
    """Also one of pieces, some of which are held out."""

    def stream() -> PieceStream:
        held_out = {digest(Example("text 3"))}
        return PieceStream(RepeatedTexts(numbered), Cutter(tokenizer, 6), held_out)

    first = stream()
    for _ in range(taken):
        next(first)
    position = first.state_dict()
    expected = [next(first).text for _ in range(30)]
    second = stream()
    second.load_state_dict(position)
    assert second.state_dict() == position
    assert [next(second).text for _ in range(30)] == expected


def test_what_is_held_out_never_comes(tokenizer: PreTrainedTokenizerBase) -> None:
    cutter = Cutter(tokenizer, 64)
    held_out = digest(Example("text 3 of all passes"))
    stream = PieceStream(RepeatedTexts(numbered), cutter, {held_out})
    texts = {next(stream).text for _ in range(40)}
    assert texts == {piece.text for piece in pieces_of(numbered(1), cutter)} - {
        "text 3 of all passes"
    }


def test_texts_that_a_stage_holds_out_never_come_again(tokenizer: PreTrainedTokenizerBase) -> None:
    """Also where a block holds several passes of a small corpus; restoring a position agrees."""

    def stream() -> StreamRows:
        tokenized = partial(tokenize, tokenizer=tokenizer, max_length=64, cache=None)
        rows = StreamRows(RepeatedTexts(numbered), 20, 1, partial(tokenized, source="numbers"))
        aside = rows.set_aside(lambda count: torch.tensor([count - 1, 0]))
        assert read(tokenizer, aside) == ["text 6 of all passes", "text 0 of all passes"]
        return rows

    rows = stream()
    texts: list[str] = []
    for step in (1, 2, 3):
        position, here = rows.state_dict(), read(tokenizer, rows)
        texts += here
        again = stream()
        again.load_state_dict(position)
        assert read(tokenizer, again) == here
        rows.after_step(step)
    assert set(texts) == {f"text {i} of all passes" for i in range(1, 6)}


def test_a_stream_of_one_text_holds_none_out(tokenizer: PreTrainedTokenizerBase) -> None:
    same = RepeatedTexts(lambda number: [Example("the same")])
    tokenized = partial(tokenize, tokenizer=tokenizer, max_length=64, cache=None, source="same")
    with pytest.raises(DataError, match="same text again and again"):
        StreamRows(same, 5, 1, tokenized).set_aside(torch.arange)


def read(tokenizer: PreTrainedTokenizerBase, rows: StreamRows | TokenRows) -> list[str]:
    ids = rows.rows(torch.arange(len(rows))).ids
    return [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]


def test_a_source_that_has_become_empty() -> None:
    """Files may go while they are read."""
    stream = RepeatedTexts(lambda number: islice(numbered(number), 7 if number == 1 else 0))
    for _ in range(7):
        next(stream)
    with pytest.raises(DataError, match="no text"):
        next(stream)
