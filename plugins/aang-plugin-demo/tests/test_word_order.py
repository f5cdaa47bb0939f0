"""The task about the order of words."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from aang_plugin_demo.documentation import DemoTaskUnavailable
from aang_plugin_demo.word_order import INTACT, SHUFFLED, sentences, shuffled, word_order

from aang_core import ReadReport
from tests.support.runs import read_end_task, resolve_config

SENTENCE = "Return the number of messages that the server holds."


def test_it_is_read_by_its_name_balanced_and_without_repeated_texts() -> None:
    task, _ = read_end_task(resolve_config({}, {"dataset": "word-order"}), ReadReport())
    parts = task.train, task.dev, task.test
    assert [len(part) for part in parts[:2]] == [200, 200]
    assert len(task.test) > 1_000
    texts = [example.text for part in parts for example in part]
    assert len(set(texts)) == len(texts)
    for part in parts:
        counts = Counter(example.label for example in part)
        assert set(counts) == {INTACT, SHUFFLED}
        assert max(counts.values()) <= 0.55 * len(part)


def test_shuffling_keeps_words_and_ends_and_depends_on_the_sentence_only() -> None:
    mixed = shuffled(SENTENCE)
    assert mixed != SENTENCE
    assert Counter(mixed.split()) == Counter(SENTENCE.split())
    assert (mixed.split()[0], mixed.split()[-1]) == ("Return", "holds.")
    # Recorded: another order would be another task.
    assert sha256(mixed.encode()).hexdigest()[:8] == "87f897b2"


def test_sentences_are_prose_neither_short_nor_long() -> None:
    short, table = "See there for more of it.", "+----+----+ +----+----+ | a1 | b2 | | c3 | d4 |"
    assert list(sentences(f"{SENTENCE} {short} {SENTENCE}")) == [SENTENCE, SENTENCE]
    assert list(sentences(table)) == []
    assert list(sentences("Return " + "the " * 80 + "end.")) == []


def test_a_library_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DemoTaskUnavailable, match="has too few of them"):
        word_order(ReadReport(), tmp_path)
