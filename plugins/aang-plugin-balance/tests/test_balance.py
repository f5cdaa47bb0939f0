"""Uncertainty weighting, GradNorm and DWA, each a step or two by hand."""

import json
import math
from typing import Any

import pytest
from aang_plugin_balance.dwa import DynamicWeightAverage
from aang_plugin_balance.gradnorm import GradNorm
from aang_plugin_balance.uncertainty import LIMIT, Uncertainty
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, StepSignals, TaskCard

END = TaskCard("end")
THREE = [TaskCard(name) for name in "abc"]
KINDS = (Uncertainty, GradNorm, DynamicWeightAverage)


def losses(**values: float) -> StepSignals:
    return StepSignals({}, {}, {}, {"loss": 0.0}, None, values)


def both(norm: dict[str, float], loss: dict[str, float]) -> StepSignals:
    return StepSignals({}, {}, norm, {}, None, loss)


@pytest.mark.parametrize("made", KINDS)
def test_they_keep_the_contract(made: Any) -> None:
    check_weighter(made)
    check_weighter(lambda end, auxiliaries: made(end, auxiliaries, n=2))


@pytest.mark.parametrize("made", KINDS)
def test_none_asks_for_the_dev_gradient(made: Any) -> None:
    assert not made.signals & {"cosine", "dot"}


@pytest.mark.parametrize("made", KINDS)
def test_all_tasks_start_with_the_same_weight(made: Any) -> None:
    assert made(END, THREE).weights() == dict.fromkeys(["end", "a", "b", "c"], 0.25)


def test_uncertainty_by_hand() -> None:
    """s ← s + 0.5 (e^-s L − ½), twice: with L = 2.5, s = 1, then 1 + 0.5 (2.5/e − 0.5)."""
    weighter = Uncertainty(END, THREE[:1], lr=0.5)
    bench = RecordingWorkbench("end", ["a"], measure=lambda _: losses(end=0.5, a=2.5))
    weighter.round(bench)
    assert weighter.record() == {"log_variances": {"end": 0.0, "a": 1.0}}
    e = math.e
    assert weighter.weights() == pytest.approx({"end": e / (e + 1), "a": 1 / (e + 1)})
    weighter.round(bench)
    assert bench.coefficients[1] == pytest.approx({"end": e / (e + 1), "a": 1 / (e + 1)})
    assert weighter.record()["log_variances"]["a"] == pytest.approx(1 + 0.5 * (2.5 / e - 0.5))


def test_the_variance_settles_at_twice_the_loss() -> None:
    weighter = Uncertainty(END, THREE[:1], lr=0.1)
    for _ in range(2000):
        weighter.observe(["a"], losses(end=0.25, a=3.0))
    found = weighter.record()["log_variances"]
    assert found == pytest.approx({"end": math.log(0.5), "a": math.log(6.0)}, abs=1e-6)


def test_huge_and_vanishing_losses_leave_finite_variances() -> None:
    weighter = Uncertainty(END, THREE[:1], lr=10.0)
    for _ in range(10):
        weighter.observe(["a"], losses(end=1e-30, a=1e30))
    assert weighter.record()["log_variances"] == {"end": -LIMIT, "a": LIMIT}
    assert sum(weighter.weights().values()) == pytest.approx(1.0)


def test_a_loss_without_targets_says_nothing_about_a_variance() -> None:
    """Otherwise an objective that has none for long would get all of the weight."""
    weighter = Uncertainty(END, THREE[:1], lr=0.5)
    weighter.observe(["a"], losses(end=1.0, a=0.0))
    assert weighter.record()["log_variances"] == {"end": 0.25, "a": 0.0}


def test_gradnorm_by_hand() -> None:
    """Norms 1, 2, 3 and 6 at equal losses: Ḡ = 3, so slopes are −⅓, −⅔, 0 and +2; mean norm 3."""
    weighter = GradNorm(END, THREE, lr=0.3)
    equal = dict.fromkeys(["end", "a", "b", "c"], 2.0)
    weighter.observe(["a", "b", "c"], both({"end": 1.0, "a": 2.0, "b": 3.0, "c": 6.0}, equal))
    # 1.1, 1.2, 1.0 and 0.4, whose sum is 3.7.
    expected = {"end": 1.1 / 3.7, "a": 1.2 / 3.7, "b": 1.0 / 3.7, "c": 0.4 / 3.7}
    assert weighter.weights() == pytest.approx(expected)
    assert weighter.record()["largest_losses"] == equal


def test_a_task_that_learns_slowly_has_a_longer_target() -> None:
    """Equal norms; the end task's loss halves, a's stays: r = ⅔ and 4/3, which are the targets."""
    weighter = GradNorm(END, THREE[:1], lr=0.1, alpha=1.0)
    ones = {"end": 1.0, "a": 1.0}
    weighter.observe(["a"], both(ones, {"end": 4.0, "a": 3.0}))
    assert weighter.weights() == {"end": 0.5, "a": 0.5}
    weighter.observe(["a"], both(ones, {"end": 2.0, "a": 3.0}))
    assert weighter.weights() == pytest.approx({"end": 0.9 / 2, "a": 1.1 / 2})


@pytest.mark.parametrize("first", [0.0, 1e-4, 0.9])
def test_a_loss_that_begins_next_to_nothing_does_not_take_the_weight(first: float) -> None:
    """As that of pseudo-labels, before a prediction is confident enough to be one."""
    gradnorm, dwa = GradNorm(END, THREE[:1]), DynamicWeightAverage(END, THREE[:1], every=1)
    ones = {"end": 1.0, "a": 1.0}
    for step in range(100):
        signals = both(ones, {"end": 1.0 - step / 200, "a": 0.9 if step else first})
        gradnorm.observe(["a"], signals)
        dwa.observe(["a"], signals)
        assert dwa.weights()["end"] > 0.15
    assert gradnorm.weights()["end"] == pytest.approx(0.263, abs=0.002)


def test_a_sampled_step_moves_no_other_task_but_by_the_mean() -> None:
    weighter = GradNorm(END, THREE, lr=0.1, n=1)
    weighter.observe(["a"], both({"end": 1.0, "a": 3.0}, {"end": 1.0, "a": 1.0}))
    weights = weighter.weights()
    assert weights["b"] == weights["c"]
    assert weights["a"] < weights["b"] < weights["end"]


def test_gradients_and_losses_of_zero_change_nothing() -> None:
    weighter = GradNorm(END, THREE[:1])
    weighter.observe(["a"], both({"end": 0.0, "a": 0.0}, {"end": 0.0, "a": 0.0}))
    assert weighter.weights() == {"end": 0.5, "a": 0.5}
    weighter.observe(["a"], both({"end": 1.0, "a": 1.0}, {"end": 0.0, "a": 0.0}))
    assert weighter.weights() == {"end": 0.5, "a": 0.5}


def test_dwa_by_hand() -> None:
    """Means of two steps: end 3 → 1.5, a 2 → 2; rates ½ and 1, divided by T = 2."""
    weighter = DynamicWeightAverage(END, THREE[:1], every=2)
    for end, a in ((2.0, 1.0), (4.0, 3.0), (1.0, 2.0)):
        weighter.observe(["a"], losses(end=end, a=a))
        assert weighter.weights() == {"end": 0.5, "a": 0.5}
    weighter.observe(["a"], losses(end=2.0, a=2.0))
    low, high = math.exp(0.25), math.exp(0.5)
    expected = {"end": low / (low + high), "a": high / (low + high)}
    assert weighter.weights() == pytest.approx(expected)
    assert weighter.coefficients(["a"]) == pytest.approx(expected)


@pytest.mark.parametrize("steps", range(8))
def test_dwa_goes_on_in_the_middle_of_a_mean(steps: int) -> None:
    """Its steps, sums and means of before are restored, wherever a run was interrupted."""
    seen = [losses(end=1.0 + i, a=4.0 / (i + 1)) for i in range(8)]
    whole = DynamicWeightAverage(END, THREE[:1], every=3)
    saved: list[str] = []
    for signals in seen:
        saved.append(json.dumps(whole.state_dict()))
        whole.observe(["a"], signals)
    resumed = DynamicWeightAverage(END, THREE[:1], every=3)
    resumed.load_state_dict(json.loads(saved[steps]))
    for signals in seen[steps:]:
        resumed.observe(["a"], signals)
    assert resumed.state_dict() == whole.state_dict()
    assert resumed.weights() == whole.weights() != {"end": 0.5, "a": 0.5}


def test_a_task_that_was_not_sampled_has_the_rate_one() -> None:
    weighter = DynamicWeightAverage(END, THREE, every=1, n=1)
    weighter.observe(["a"], losses(end=1.0, a=1.0))
    weighter.observe(["b"], losses(end=1.0, b=1.0))
    assert weighter.record() == {"rates": dict.fromkeys(["end", "a", "b", "c"], 1.0)}
    weighter.observe(["b"], losses(end=1.0, b=0.5))
    assert weighter.record()["rates"] == {"end": 1.0, "a": 1.0, "b": 0.5, "c": 1.0}


@pytest.mark.parametrize("made", KINDS)
def test_the_state_of_a_run_over_other_tasks_is_refused(made: Any) -> None:
    state = made(END, THREE).state_dict()
    with pytest.raises(ConfigError, match=r"differ in: c\."):
        made(END, THREE[:2]).load_state_dict(state)


@pytest.mark.parametrize(
    ("made", "options", "message"),
    [
        (Uncertainty, {"lr": -1.0}, "option lr"),
        (GradNorm, {"lr": True}, "option lr"),
        (GradNorm, {"alpha": math.inf}, "option alpha"),
        (DynamicWeightAverage, {"temperature": 0.0}, "option temperature"),
        (DynamicWeightAverage, {"every": 0}, "option every"),
        (DynamicWeightAverage, {"n": 0}, "option n"),
    ],
)
def test_a_senseless_option_is_refused(made: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(END, THREE, **options)
