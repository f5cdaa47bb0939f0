"""The settings that the checks of primitives run with."""

import itertools
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plugins import PROPERTY


def test_a_machine_that_is_busy_while_inputs_are_made_fails_no_check() -> None:
    """Hypothesis allows five deadlines in all for making inputs; this takes more."""
    made = itertools.count()

    @st.composite
    def slowly(draw: st.DrawFn) -> int:
        if next(made) == 1:  # Hypothesis does not count the first
            time.sleep(1.05)
        return draw(st.integers(0, 9))

    @settings(PROPERTY, max_examples=15, deadline=200)
    @given(slowly())
    def check(number: int) -> None:
        assert 0 <= number <= 9

    check()
    assert next(made) > 1
