"""Auxiliary tasks that every draw of a step-wise weighter takes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aang_testing import RecordingWorkbench

from aang_core import StepwiseWeighter


class Drawn(StepwiseWeighter):
    """Equal coefficients for the end task, for ``b`` and for those that are drawn."""

    always = ("b",)

    def __init__(self, size: int | None, odds: Mapping[str, float] | None = None) -> None:
        self.sample_size = size
        self._odds = odds

    def sample_weights(self) -> Mapping[str, float] | None:
        return self._odds

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return dict.fromkeys(["end", *sampled], 1 / (1 + len(sampled)))

    def weights(self) -> Mapping[str, float]:
        return self.coefficients("abc")

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""


def trained(weighter: StepwiseWeighter, rounds: int = 30) -> tuple[RecordingWorkbench, list[str]]:
    """The bench after some rounds, and the auxiliary tasks of each as one word."""
    bench = RecordingWorkbench("end", ["a", "b", "c"])
    for _ in range(rounds):
        weighter.round(bench)
    return bench, ["".join(sorted(step.keys() - {"end"})) for step in bench.coefficients]


def test_a_draw_takes_them_besides_the_sampled_ones() -> None:
    """The weighter says nothing of them in its weights of a draw."""
    bench, taken = trained(Drawn(1))
    assert set(taken) == {"ab", "bc"}
    assert {"a": 1.0, "c": 1.0, "b": 0.0} in bench.sample_weights


def test_their_weight_in_a_draw_has_no_effect() -> None:
    bench, taken = trained(Drawn(1, {"a": 1.0, "b": 100.0, "c": 0.0}))
    assert set(taken) == {"ab"}
    assert {"a": 1.0, "b": 0.0, "c": 0.0} in bench.sample_weights


@pytest.mark.parametrize("size", [2, 5, None])
def test_where_all_others_are_taken_nothing_is_drawn(size: int | None) -> None:
    bench, taken = trained(Drawn(size), rounds=2)
    assert taken == ["abc", "abc"]
    assert bench.sample_weights == [None, None]
