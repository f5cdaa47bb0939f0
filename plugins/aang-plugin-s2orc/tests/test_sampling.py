"""Samples of a stream in one pass."""

from collections import Counter

import pytest
import torch

# Which words a text has is private, and a sample alone would not show every one of them.
from aang_plugin_s2orc.domain.sampling import _words, nearest, uniform
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.feature_extraction.text import HashingVectorizer

from aang_core import DataError


def test_every_sample_is_as_likely() -> None:
    """All 10 pairs of 5 texts, over 4,000 seeds; in the order of the stream."""
    texts = list("abcde")
    pairs = Counter(
        "".join(uniform(iter(texts), 2, torch.Generator().manual_seed(seed)))
        for seed in range(4000)
    )
    assert len(pairs) == 10
    assert all(pair[0] < pair[1] for pair in pairs)
    assert chisquare(list(pairs.values())).pvalue > 1e-3


def test_fewer_texts_than_wanted_are_all_taken() -> None:
    assert uniform(iter("abc"), 9, torch.Generator()) == ["a", "b", "c"]
    assert nearest(iter(["trees", "parsing"]), 9, ["parsing of sentences"]) == ["parsing", "trees"]


def test_the_nearest_come_first_and_the_earlier_of_equals() -> None:
    task = ["parsing sentences with grammars", "grammars for parsing"]
    texts = [
        "weather in the mountains",
        "parsing with grammars, long aside about mountains",
        "Parsing, grammars!",
        "parsing grammars",
    ]
    assert nearest(iter(texts), 3, task) == [texts[2], texts[3], texts[1]]


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        (
            "这个句法分析器读取句子并返回语法树。",
            ["今天的天气在山里很好。", "山里有很多人。", "语法树来自句法分析器。"],
        ),
        (
            "構文解析器は文を読みます。",
            ["山の天気は良いです。", "彼は山へ行きます。", "これが構文解析器です。"],
        ),
        ("ตัวแจงส่วนอ่านประโยค", ["อากาศบนภูเขาดี", "เขาไปภูเขา", "นี่คือตัวแจงส่วน"]),
        # The same consonants with other vowels are other words.
        ("हिंदी किताब", ["हद कतब", "हाद कताबा", "एक हिंदी किताब"]),
    ],
)
def test_words_of_other_scripts(task: str, texts: list[str]) -> None:
    assert nearest(iter(texts), 1, [task]) == texts[2:]


# The lower case of İ has a combining mark, which scikit-learn takes for the end of a word.
@given(st.text(st.characters(max_codepoint=0x2FF, exclude_characters="\u0130")))
@example("Neural parsers, 2nd edition: it's the ﬁrst_one, über Straßen—as naïve as x+y.")
def test_words_between_spaces_are_those_of_scikit_learn(text: str) -> None:
    theirs = HashingVectorizer(stop_words="english").build_analyzer()
    assert _words(text) == theirs(text)


def test_nothing_is_nearest_to_texts_without_words() -> None:
    """Stop words and single characters are left out of the comparison."""
    with pytest.raises(DataError, match="--sample random"):
        nearest([], 1, ["To be or not to be", "x + y"])
