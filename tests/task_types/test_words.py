"""Where words begin and end, in scripts with and without spaces between them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aang_core import ReadReport, TaggedWord
from tests.support.data import TaskType, letter_runs, load_task, tag_labels, word_places

SENTENCE = "张伟在北京大学工作，李娜在上海。"
TAGS = tag_labels(("B-LOC", "B-PER", "I-LOC", "I-PER", "O"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't go to Saint-Denis, e.g. now!", "Don't go to Saint-Denis , e.g . now !"),
        ("张伟在北京，5月", "张 伟 在 北 京 ， 5 月"),
        ("東京タワーでiPhone15を", "東 京 タ ワ ー で iPhone15 を"),
        ("ｶﾞｷ", "ｶﾞ ｷ"),
        ("ที่นี่ ๒๕๖๗", "ที่ นี่ ๒๕๖๗"),
        ("ทำ", "ทำ"),
        ("हिन्दी में", "हिन्दी में"),
        ("العَرَبِيَّةُ", "العَرَبِيَّةُ"),
        ("Cafe\u0301's bar", "Cafe\u0301's bar"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a ❤\ufe0f", "a ❤\ufe0f"),
        ("\u0301 x", "\u0301 x"),
    ],
)
def test_words_of_scripts(text: str, words: str) -> None:
    assert [text[start:end] for start, end in word_places(text)] == words.split()


@given(st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from("-'’.– “€…")))
def test_words_of_latin_text_are_those_of_a_plain_pattern(text: str) -> None:
    plain = re.finditer(r"\w+(?:[-'’.]\w+)*|[^\w\s]", text)
    assert word_places(text) == [match.span() for match in plain]
    assert letter_runs(text) == re.findall(r"\w+", text)


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("क्ที่ำ北a1_-\u0301\u200d \n")))
def test_every_character_but_space_is_in_one_word(text: str) -> None:
    places = word_places(text)
    covered = [i for start, end in places for i in range(start, end)]
    assert covered == [i for i, character in enumerate(text) if not character.isspace()]
    assert all(start < end for start, end in places)


def test_spans_of_chinese_text_keep_their_ends(tmp_path: Path) -> None:
    spans = [[0, 2, "PER"], [3, 7, "ORG"], [10, 12, "PER"], [13, 15, "LOC"]]
    path = tmp_path / "a.jsonl"
    row = json.dumps({"text": SENTENCE, "label": spans})
    path.write_text(f"{row}\n" * 4, encoding="utf-8")
    report = ReadReport()
    words = load_task(path, path, report=report).train[0].label
    assert isinstance(words, tuple)
    assert [w.tag for w in words if isinstance(w, TaggedWord)] == [
        *("B-PER", "I-PER", "O", "B-ORG", "I-ORG", "I-ORG", "I-ORG", "O", "O", "O"),
        *("B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"),
    ]
    assert not any("span" in event for event in report.counts)


def spans_of(
    text: str, places: list[tuple[int, int]], tags: list[str], kind: TaskType = TAGS
) -> list[tuple[str, str]]:
    ids = torch.tensor([[TAGS.labels.index(tag) for tag in tags]])
    logits = torch.nn.functional.one_hot(ids, len(TAGS.labels)).float()
    (found,) = kind.decode(logits, [text], [places])
    return [(one["text"], one["label"]) for one in found.label]


def test_predicted_spans_of_chinese_text_are_characters() -> None:
    places = [(0, 0), *((i, i + 1) for i in range(5)), (0, 0)]
    tags = ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert spans_of("张伟在北京", places, tags) == [("张伟", "PER"), ("北京", "LOC")]


def test_a_predicted_span_covers_its_last_token() -> None:
    """A token may be several characters, each of which is a word."""
    places = [(0, 2), (2, 3), (3, 5), (5, 7)]
    tags = ["B-PER", "O", "B-LOC", "I-LOC"]
    assert spans_of("张伟在北京大学", places, tags) == [("张伟", "PER"), ("北京大学", "LOC")]


def test_words_of_a_model_of_lists_are_between_spaces() -> None:
    """Only the first token of each was trained, so the others' tags say nothing."""
    places = [(0, 1), (1, 2), (2, 3), (3, 6), (6, 8), (8, 9)]
    tags = ["B-LOC", "B-PER", "O", "I-PER", "O", "B-PER"]
    kind = tag_labels(TAGS.labels, spaced=True)
    assert spans_of("$5,000 U.", places, tags, kind) == [("$5,000", "LOC")]
    model = SimpleNamespace(config=SimpleNamespace(architectures=["BertForTokenClassification"]))
    kind.finish(model)
    assert type(kind).of_model(model.config, TAGS.labels) == kind


def test_a_token_of_several_marks_is_the_first_of_them() -> None:
    """As ever where words have spaces between them."""
    places = [(0, 3), (3, 5)]
    assert spans_of('Inc.", too', places, ["B-LOC", "I-LOC"]) == [("Inc.", "LOC")]
