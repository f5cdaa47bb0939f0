"""What tokens read as, and where words begin, in the families of tokenizers."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from aang_core import Example, sentence_starts, word_starts
from tests.corpora.conftest import SENTENCES
from tests.support.data import tokenize, vocabulary


@pytest.fixture(scope="module")
def unigram() -> PreTrainedTokenizerFast:
    """SentencePiece's unigram model with its mark for spaces, as XLM-R and DeBERTa have it."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>"
    )


@pytest.fixture(scope="module")
def multilingual() -> PreTrainedTokenizerFast:
    """The same for scripts without spaces, where a token is a character or two."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    characters = sorted({*"天气很好不他说今去", *"「」（）“”。！？….2024", *"itrains", *"ที่ดี"})
    vocabulary = [(token, 0.0) for token in special]
    vocabulary += [(token, -3.0) for token in ["▁", "天气", "今天", "▁it", "▁rains"]]
    vocabulary += [(character, -5.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


@pytest.fixture
def bytes_() -> PreTrainedTokenizerBase:
    """A token for each byte, read by Python code."""
    tokenizer: PreTrainedTokenizerBase = ByT5Tokenizer()
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    return tokenizer


def words_of(tokenizer: PreTrainedTokenizerBase, example: Example, cache: Path) -> list[str]:
    """The words that the tokens of a text make, the space around them taken off."""
    padded = tokenize([example], tokenizer, max_length=200, cache=cache).rows(torch.arange(1))
    tokens = vocabulary(tokenizer)
    starts = word_starts(padded.ids, padded.ordinary, tokens)
    assert not (starts & ~padded.ordinary).any()
    words: list[str] = []
    for token, ordinary, begins in zip(
        padded.ids[0].tolist(), padded.ordinary[0].tolist(), starts[0].tolist(), strict=True
    ):
        if begins:
            words.append("")
        if ordinary:
            words[-1] += tokens.texts[token]
        else:
            assert tokens.texts[token] == ""
    return [word.strip() for word in words if word.strip()]


@pytest.mark.parametrize("name", ["roberta", "unigram", "bytes_"])
@pytest.mark.parametrize("text", SENTENCES)
def test_words_are_what_spaces_part(
    name: str, text: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert words_of(request.getfixturevalue(name), Example(text), tmp_path) == text.split()


def test_wordpiece_parts_other_marks_too(bert: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    words = words_of(bert, Example("The seed fixes tokens; we train."), tmp_path)
    assert words == ["the", "seed", "fixes", "tokens", ";", "we", "train."]


def test_line_ends_part_words_and_so_does_the_second_text(
    roberta: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    example = Example("The\nparser\treads", text_pair="a tree")
    assert words_of(roberta, example, tmp_path) == ["The", "parser", "reads", "a", "tree"]


def test_part_of_a_character_is_no_text(roberta: PreTrainedTokenizerFast) -> None:
    tokens = vocabulary(roberta)
    parts = [tokens.texts[token] for token in roberta("é", add_special_tokens=False)["input_ids"]]
    assert parts == ["\ufffd", "\ufffd"]
    assert tokens.texts is tokens.texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今天天气很好。", ["今天", "天气", "很", "好。"]),
        ("it rains.今天", ["it", "rains.", "今天"]),
        # A mark above or below a letter belongs to it.
        ("ที่ดี", ["ที่", "ดี"]),
    ],
)
def test_words_of_scripts_without_spaces(
    multilingual: PreTrainedTokenizerFast, tmp_path: Path, text: str, words: list[str]
) -> None:
    assert words_of(multilingual, Example(text), tmp_path) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("今天天气很好。他去！？今天不好", ["今天天气很好。", "他去！？", "今天不好"]),
        ("他说“天气好。”今天（去。）2024 it", ["他说“天气好。”", "今天（去。）", "2024 it"]),
        ("「天气好。」「不好。」他说", ["「天气好。」", "「不好。」", "他说"]),
        ("it…rains.2024。it", ["it…rains.2024。", "it"]),
        ("天气…今天", ["天气…", "今天"]),
    ],
)
def test_sentences_without_spaces_between(
    multilingual: PreTrainedTokenizerFast, text: str, sentences: list[str]
) -> None:
    assert sentences_of(multilingual, text) == sentences


def sentences_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
    padded = tokenize([Example(text)], tokenizer, max_length=200, cache=None).rows(torch.arange(1))
    tokens = vocabulary(tokenizer)
    starts = sentence_starts(padded.ids, padded.ordinary, tokens)
    found: list[str] = []
    for token, begins in zip(padded.ids[0].tolist(), starts[0].tolist(), strict=True):
        if begins:
            found.append("")
        if found:
            found[-1] += "?" if token == tokenizer.unk_token_id else tokens.texts[token]
    return [sentence.strip() for sentence in found]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("今天Ω气。他去", ["今天?气。", "他去"]),
        ("it rains. Ω 天气", ["it rains.", "? 天气"]),
        ("Ω rains", ["? rains"]),
    ],
)
def test_an_unknown_token_is_part_of_its_sentence(
    multilingual: PreTrainedTokenizerFast, text: str, sentences: list[str]
) -> None:
    assert sentences_of(multilingual, text) == sentences


@pytest.mark.parametrize("family", ["bert", "roberta", "multilingual", "bytes_"])
def test_what_comes_between_texts(family: str, request: pytest.FixtureRequest) -> None:
    """What the tokenizer adds, and padding; not a special token within a text."""
    tokenizer: PreTrainedTokenizerBase = request.getfixturevalue(family)
    inside = "an unknown Ωβ and a masked " + str(tokenizer.mask_token)
    pairs = [Example(inside, text_pair="a tree"), Example("a tree")]
    padded = tokenize(pairs, tokenizer, max_length=200, cache=None).rows(torch.arange(2))
    parts = vocabulary(tokenizer).parts_texts(padded.ids, padded.ordinary)
    texts = [inside, "a tree"]
    numbers = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    assert (~parts).sum(dim=1).tolist() == [sum(numbers), numbers[1]]
    assert (~parts & ~padded.ordinary).sum().item() >= 1
    assert parts[~padded.real].all()
    assert not (parts & padded.ordinary).any()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rains. It pours? It is wet!", ["It rains.", "It pours?", "It is wet!"]),
        ('"It rains." He left. (Wet.) Done', ['"It rains."', "He left.", "(Wet.)", "Done"]),
        ("Version 3.5 of a.b is out... Well.", ["Version 3.5 of a.b is out...", "Well."]),
        ("no end", ["no end"]),
    ],
)
def test_sentences_end_with_marks_and_what_closes_there(
    roberta: PreTrainedTokenizerBase, text: str, sentences: list[str]
) -> None:
    assert sentences_of(roberta, text) == sentences


def test_the_second_text_of_a_pair_begins_a_sentence(roberta: PreTrainedTokenizerBase) -> None:
    pair = Example("one two", text_pair="three four")
    padded = tokenize([pair], roberta, max_length=200, cache=None).rows(torch.arange(1))
    starts = sentence_starts(padded.ids, padded.ordinary, vocabulary(roberta))
    assert starts.sum() == 2
    assert starts[0, 1]
