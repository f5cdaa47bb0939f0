"""The settings that the checks of primitives run with."""

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plugins import PROPERTY


@pytest.mark.full
def test_a_machine_that_is_busy_while_inputs_are_made_fails_no_check() -> None:
    """Hypothesis allows five deadlines in all for making inputs; these take more."""
    made = itertools.count()

    @st.composite
    def slowly(draw: st.DrawFn) -> int:
        if next(made) < 3:
            time.sleep(1.2)
        return draw(st.integers(0, 9))

    @settings(PROPERTY, max_examples=15, deadline=200)
    @given(slowly())
    def check(number: int) -> None:
        assert 0 <= number <= 9

    check()
    assert next(made) > 1
