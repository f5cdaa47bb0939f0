"""The shared check fails on weighters that are nearly right; each promise is broken here once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from aang_plugin_tartan.meta_tartan import MetaTartan
from aang_plugin_tartan.static import Static

from aang_core import TaskCard, Weighter
from aang_core.testing import check_weighter


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
