"""The shared check fails on weighters that are nearly right; each promise is broken here once."""

import math

import pytest
from aang_plugin_tartan.meta_tartan import MetaTartan
from aang_plugin_tartan.static import Static

from aang_core.testing import check_weighter


class Unnormalised(Static):
    """Weights of one each."""

    def weights(self):
        return dict.fromkeys(super().weights(), 1.0)


class ForgetsTheEndTask(Static):
    """Reports the auxiliary tasks alone."""

    def weights(self):
        weights = dict(super().weights())
        del weights[self._end_task]
        return weights


class AuxiliariesAlone(Static):
    """Trains everything but the end task."""

    def coefficients(self, sampled):
        equal = {name: 1 / len(sampled) for name in sampled}
        return equal or super().coefficients(sampled)

    def weights(self):
        return super().coefficients(list(self._relative))


class Amnesiac(MetaTartan):
    """Saves nothing."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class LiveState(MetaTartan):
    """Hands out its own dictionary."""

    def state_dict(self):
        return {"logits": self._logits}


class SetState(MetaTartan):
    """A state that JSON cannot hold."""

    def state_dict(self):
        return {"logits": dict(self._logits), "names": set(self._logits)}


class Gullible(MetaTartan):
    """Learns from NaN."""

    def observe(self, sampled, signals):
        for name in (self._end_task, *sampled):
            self._logits[name] += self._lr * signals.cosine[name]


class Overflowing(Gullible):
    """A softmax without the shift by the highest logit."""

    def _softmax(self, names):
        powers = {name: math.exp(50 * self._logits[name]) for name in names}
        return {name: power / sum(powers.values()) for name, power in powers.items()}


class OddSignal(MetaTartan):
    """Asks for what there is not."""

    signals = frozenset({"angle"})


def fails_without_objectives(end_task, auxiliaries):
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
        (Gullible, "weights after a signal that was NaN: expected finite"),
        (OddSignal, "signals: expected some of .*, got ..angle.."),
        (fails_without_objectives, "needs objectives"),
    ],
)
def test_a_weighter_that_breaks_a_promise(factory, message):
    with pytest.raises(AssertionError, match=message):
        check_weighter(factory)


def test_a_weighter_that_overflows():
    with pytest.raises((AssertionError, OverflowError)):
        check_weighter(Overflowing)
