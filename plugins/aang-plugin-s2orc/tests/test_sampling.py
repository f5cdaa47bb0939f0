"""Samples of a stream in one pass."""

from collections import Counter

import pytest
import torch
from aang_plugin_s2orc.domain.sampling import nearest, uniform
from aang_plugin_s2orc.domain.seen import Seen
from scipy.stats import chisquare

from aang_core import DataError


def test_every_sample_is_as_likely() -> None:
    """All 10 pairs of 5 texts, over 4,000 seeds; in the order of the stream."""
    texts = list("abcde")
    pairs = Counter(
        "".join(uniform(2, torch.Generator().manual_seed(seed))(iter(texts)))
        for seed in range(4000)
    )
    assert len(pairs) == 10
    assert all(pair[0] < pair[1] for pair in pairs)
    assert chisquare(list(pairs.values())).pvalue > 1e-3


def test_fewer_texts_than_wanted_are_all_taken() -> None:
    assert uniform(9, torch.Generator())(iter("abc")) == ["a", "b", "c"]
    assert nearest(9, ["parsing of sentences"])(iter(["trees", "parsing"])) == ["parsing", "trees"]


def test_the_nearest_come_first_and_the_earlier_of_equals() -> None:
    task = ["parsing sentences with grammars", "grammars for parsing"]
    texts = [
        "weather in the mountains",
        "parsing with grammars, long aside about mountains",
        "Parsing, grammars!",
        "parsing grammars",
    ]
    assert nearest(3, task)(iter(texts)) == [texts[2], texts[3], texts[1]]


def test_nothing_is_nearest_to_texts_without_words() -> None:
    """Stop words and single characters are left out of the comparison."""
    with pytest.raises(DataError, match="--sample random"):
        nearest(1, ["To be or not to be", "x + y"])


def test_what_came_before_is_known_and_little_else() -> None:
    seen = Seen(bits=2**18)
    assert not any(seen.add(f"text {i}") for i in range(2000))
    assert all(seen.add(f"text {i}") for i in range(2000))
    wrong = sum(seen.add(f"other {i}") for i in range(2000))
    assert wrong <= 2


def test_what_came_before_is_known_however_much_it_is() -> None:
    """A first filter for 4,096 texts is followed by larger ones, two bytes a text."""
    seen = Seen(bits=2**16)
    wrong = sum(seen.add(f"text {i}") for i in range(50_000))
    assert wrong <= 4 * 50
    assert all(seen.add(f"text {i}") for i in range(50_000))
    assert seen.nbytes == (1 + 2 + 4 + 8) * 2**13
