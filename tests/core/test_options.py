"""Checks of options, and what their messages say."""

import math
from typing import Any

import pytest

from aang_core import ConfigError, number_option, sample_size_option, whole_number_option


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_a_number_in_range_is_given_back(value: float) -> None:
    """Bounds are included unless said otherwise."""
    assert number_option("option x", value, "a share", low=0, high=1) == value


@pytest.mark.parametrize("value", [True, "0.5", None, math.nan, math.inf, -0.1, 1.1, 0, 1])
def test_anything_else_is_refused_with_what_to_give(value: object) -> None:
    """Not a number, not finite, out of range, or a bound that is left out."""
    with pytest.raises(ConfigError, match=r"option x is .*; give a share"):
        number_option("option x", value, "a share", low=0, high=1, above_low=True, below_high=True)


def test_a_sample_is_no_larger_than_what_there_is() -> None:
    """n of them, all for None, at most all."""
    assert [sample_size_option(n, "abcd") for n in (1, 4, 9, None)] == [1, 4, 4, 4]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_a_sample_size_is_a_positive_whole_number(n: object) -> None:
    """And the message says so."""
    with pytest.raises(ConfigError, match="1 or more"):
        sample_size_option(n, "abcd")


@pytest.mark.parametrize(("value", "low"), [(1, 1), (7, 1), (0, 0), (-3, -3)])
def test_a_whole_number_in_range_is_given_back(value: int, low: int) -> None:
    assert whole_number_option("option x", value, "a number of steps", low=low) == value


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None, math.nan])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"option x is .*; give a number of steps"):
        whole_number_option("option x", value, "a number of steps")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"low": 0, "above_low": True}, "a number above 0"),
        ({"low": 0, "high": 1, "below_high": True}, "a number of at least 0 and below 1"),
        ({"high": 1}, "a number at most 1"),
    ],
)
def test_the_limits_say_what_to_give(limits: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^option x is 'a'; give {said}$"):
        number_option("option x", "a", **limits)
    with pytest.raises(ConfigError, match=r"^option x is 1; give a whole number, 2 or more$"):
        whole_number_option("option x", 1, low=2)
