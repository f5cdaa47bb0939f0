"""The shared check fails on weighters that are nearly right; each promise is broken here once."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
import torch
from aang_plugin_tartan.meta_tartan import MetaTartan
from aang_plugin_tartan.static import Static
from aang_testing import check_weighter

from aang_core import TaskCard, Weighter, Workbench


class Unnormalised(Static):
    """Weights of one each."""

    def weights(self) -> Mapping[str, float]:
        return dict.fromkeys(super().weights(), 1.0)


class ForgetsTheEndTask(Static):
    """Reports the auxiliary tasks alone."""

    def weights(self) -> Mapping[str, float]:
        weights = dict(super().weights())
        del weights[self._end_task]
        return weights


class AuxiliariesAlone(Static):
    """Trains everything but the end task."""

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        equal = {name: 1 / len(sampled) for name in sampled}
        return equal or super().coefficients(sampled)

    def weights(self) -> Mapping[str, float]:
        return super().coefficients(list(self._relative))


class Amnesiac(MetaTartan):
    """Saves nothing."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        pass


class LiveState(MetaTartan):
    """Hands out its own dictionary."""

    def state_dict(self) -> dict[str, Any]:
        return {"logits": self._logits}


class SetState(MetaTartan):
    """A state that JSON cannot hold."""

    def state_dict(self) -> dict[str, Any]:
        return {"logits": dict(self._logits), "names": set(self._logits)}


class Overflowing(MetaTartan):
    """A softmax without the shift by the highest logit."""

    def _softmax(self, names: Iterable[str]) -> dict[str, float]:
        powers = {name: math.exp(50 * self._logits[name]) for name in names}
        return {name: power / sum(powers.values()) for name, power in powers.items()}


class OddSignal(MetaTartan):
    """Asks for what there is not."""

    signals = frozenset({"angle"})  # type: ignore[arg-type]


class Idle(Static):
    """Takes no step in some rounds."""

    rounds = 0

    def round(self, bench: Workbench) -> None:
        self.rounds += 1
        if self.rounds % 3:
            super().round(bench)


class StartsAnywhere(MetaTartan):
    """Two runs with one seed start with different weights."""

    def __init__(self, end_task: TaskCard, auxiliaries: Sequence[TaskCard]) -> None:
        super().__init__(end_task, auxiliaries)
        self._logits = {name: random.random() for name in self._logits}


class Deaf(Static):
    """Asks for a signal and has no use for it."""

    signals = frozenset({"loss"})


class SlightlyTooMuch(Static):
    """Off by more than single precision is."""

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return {name: weight * 1.001 for name, weight in super().coefficients(sampled).items()}


class SinglePrecision(MetaTartan):
    """Honest: a softmax in single precision, which is right to seven digits."""

    def _softmax(self, names: Iterable[str]) -> dict[str, float]:
        chosen = [*names]
        logits = torch.tensor([self._logits[name] for name in chosen])
        return dict(zip(chosen, logits.softmax(dim=0).tolist(), strict=True))


class SumsInItsOwnOrder(MetaTartan):
    """Honest: a sum whose last digit depends on the order of the names it has saved."""

    def _softmax(self, names: Iterable[str]) -> dict[str, float]:
        powers = {name: math.exp(self._logits[name]) for name in names}
        total = 0.0
        for name in self._logits:
            total += powers.get(name, 0.0)
        return {name: power / total for name, power in powers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._logits = dict(state["logits"])


def fails_without_objectives(end_task: TaskCard, auxiliaries: Sequence[TaskCard]) -> Weighter:
    weighter = Static(end_task, auxiliaries)
    assert auxiliaries, "needs objectives"
    return weighter


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (Unnormalised, "sum of the weights before round 0: expected 1"),
        (ForgetsTheEndTask, "names of the weights before round 0"),
        (AuxiliariesAlone, "tasks of a step: expected the end task too"),
        (Amnesiac, "weights after loading a state"),
        (LiveState, "a state taken earlier, after more rounds"),
        (SetState, "state_dict: expected JSON values"),
        (Idle, "steps, descents and trials in round 2: expected some"),
        (StartsAnywhere, "randomness of the weighter: expected draws from bench.generator alone"),
        (Deaf, "observe: expected a method that learns from loss"),
        (SlightlyTooMuch, r"sum of the weights before round 0: expected 1, got 1\.001"),
        (OddSignal, "signals: expected some of .*, got ..angle.."),
        (fails_without_objectives, "needs objectives"),
    ],
)
def test_a_weighter_that_breaks_a_promise(factory: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_weighter(factory)


def test_a_weighter_that_overflows() -> None:
    with pytest.raises((AssertionError, OverflowError)):
        check_weighter(Overflowing)


@pytest.mark.parametrize("honest", [SinglePrecision, SumsInItsOwnOrder])
def test_the_last_digit_fails_nobody(honest: Any) -> None:
    check_weighter(honest)
