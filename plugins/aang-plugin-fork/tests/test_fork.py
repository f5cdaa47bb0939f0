"""ForkMerge and TapWeight on a quadratic problem, through the real bench."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from aang_plugin_fork.forkmerge import ForkMerge
from aang_plugin_fork.tapweight import TapWeight
from aang_testing import (
    Pull,
    QuadraticProblem,
    RecordingWorkbench,
    check_weighter,
    quadratic_problem,
)
from torch import Tensor

from aang_core import AangError, ConfigError, DevLossAlong, TaskCard, softmax

RATE = 0.1
CENTRES = {"end": (3.0, 1.0), "right": (4.0, -2.0), "up": (0.0, 5.0)}
CARDS = [TaskCard(name) for name in CENTRES]


def problem() -> QuadraticProblem:
    """The dev score is minus the distance from the end task's centre."""
    end, *others = [Pull(name, centre) for name, centre in CENTRES.items()]
    return quadratic_problem(end, others, lr=RATE)


def trained(theta: Tensor, weights: Mapping[str, float], steps: int) -> Tensor:
    """Gradient descent by hand on Σ w_k ½‖θ − c_k‖²."""
    for _ in range(steps):
        slope = sum(
            (w * (theta - torch.tensor(CENTRES[n])) for n, w in weights.items()),
            torch.zeros(2, dtype=torch.float64),
        )
        theta = theta - RATE * slope
    return theta


def test_they_keep_the_contract() -> None:
    check_weighter(ForkMerge)
    check_weighter(TapWeight)
    check_weighter(lambda e, a: ForkMerge(e, a, n=None, steps=2, shares=3, dev_rows=7))
    check_weighter(lambda e, a: TapWeight(e, a, n=None, dev_batches=2, lr=2.0))


def test_one_merge_by_hand() -> None:
    """Three branches of four steps; every merge of the greedy search is scored by hand."""
    made = problem()
    bench, theta = made.bench, made.theta
    start = theta.detach().clone()
    branches = [{"end": 1.0}, {"end": 0.5, "right": 0.5}, {"end": 0.5, "up": 0.5}]
    points = torch.stack([trained(start, b, 4) for b in branches])
    centre = torch.tensor(CENTRES["end"])

    def score(shares: Sequence[float]) -> float:
        merged = start + torch.tensor(shares, dtype=torch.float64) @ (points - start)
        return -float((merged - centre).norm())

    alone = [score([float(i == b) for i in range(3)]) for b in range(3)]
    order = sorted(range(3), key=lambda b: -alone[b])
    shares, best = [float(b == order[0]) for b in range(3)], max(alone)
    for branch in order[1:]:
        base = shares
        for share in (0.2, 0.4, 0.6, 0.8):
            tried = [(1 - share) * s for s in base]
            tried[branch] = share
            if score(tried) > best:
                best, shares = score(tried), tried

    weighter = ForkMerge(CARDS[0], CARDS[1:], steps=4)
    weighter.round(bench)
    names = ("end", "right", "up")
    assert weighter.record()["shares"] == pytest.approx(dict(zip(names, shares, strict=True)))
    assert weighter.record()["dev_scores"] == pytest.approx(dict(zip(names, alone, strict=True)))
    merged = start + torch.tensor(shares, dtype=torch.float64) @ (points - start)
    torch.testing.assert_close(theta.detach(), merged)
    weights = [shares[0] + 0.5 * (shares[1] + shares[2]), 0.5 * shares[1], 0.5 * shares[2]]
    assert weighter.weights() == pytest.approx(dict(zip(names, weights, strict=True)))
    assert bench.steps == 12


def test_a_branch_that_hurts_has_no_share() -> None:
    """Whatever the scores of the merges: nothing beats the end task alone here."""
    bench = RecordingWorkbench("end", ["right", "up"], score=lambda _: 0.5)
    weighter = ForkMerge(CARDS[0], CARDS[1:], n=None)
    weighter.round(bench)
    assert bench.applied[-1] == [(("end",), 1.0), (("end", "right"), 0.0), (("end", "up"), 0.0)]
    assert weighter.weights() == {"end": 1.0, "right": 0.0, "up": 0.0}


def test_the_last_round_shares_what_is_left_of_the_run() -> None:
    bench = RecordingWorkbench("end", ["right", "up"], steps=7)
    ForkMerge(CARDS[0], CARDS[1:], steps=10).round(bench)
    assert bench.trial_steps == [2, 2, 2]
    bench = RecordingWorkbench("end", ["right", "up"], steps=8)
    TapWeight(CARDS[0], CARDS[1:], pretraining_steps=1, fine_tuning_steps=10).round(bench)
    assert bench.trial_steps == [1, 1, 6]


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_score_that_is_not_finite_stops_training(value: float) -> None:
    bench = RecordingWorkbench("end", ["right"], score=lambda _: value)
    with pytest.raises(AangError, match="training has diverged"):
        ForkMerge(CARDS[0], CARDS[1:2]).round(bench)


def test_one_round_of_tapweight_by_hand() -> None:
    """δ_k of three steps each, four of fine-tuning from their mean, one step of the logits."""
    made = problem()
    bench, theta = made.bench, made.theta
    start = theta.detach().clone()
    deltas = [trained(start, {name: 1.0}, 3) - start for name in ("right", "up")]
    middle = start + 0.5 * deltas[0] + 0.5 * deltas[1]
    end = trained(middle, {"end": 1.0}, 4)
    slope = end - torch.tensor(CENTRES["end"])
    slopes = [float(slope @ delta) for delta in deltas]
    weighter = TapWeight(CARDS[0], CARDS[1:], lr=0.3, pretraining_steps=3, fine_tuning_steps=4)
    weighter.round(bench)
    torch.testing.assert_close(theta.detach(), end)
    # With two objectives of equal weight both logits move equally far, in opposite directions.
    sign = math.copysign(1.0, slopes[0] - slopes[1])
    logits = {"right": -0.3 * sign, "up": 0.3 * sign}
    assert weighter.record()["logits"] == pytest.approx(logits)
    assert weighter.record()["dev_loss"] == pytest.approx(0.5 * float(slope.square().sum()))
    shares = softmax(logits)
    own = 4 / 7
    expected = {"end": own, **{name: (1 - own) * share for name, share in shares.items()}}
    assert weighter.weights() == pytest.approx(expected)
    assert bench.steps == 3 + 3 + 4


def test_the_derivative_is_that_of_the_softmax() -> None:
    """λ = (⅔, ⅓) and slopes 3 and 0: their mean is 2, so the steps are ⅔ and −⅔."""

    class Given(RecordingWorkbench):
        def dev_loss(self, updates: Any, coefficients: Any, *, batches: Any = None) -> DevLossAlong:
            return DevLossAlong(1.0, [3.0, 0.0, 9.0])

    weighter = TapWeight(CARDS[0], CARDS[1:], lr=0.5, n=None)
    weighter.load_state_dict({"logits": {"right": math.log(2), "up": 0.0}})
    weighter.round(Given("end", ["right", "up"]))
    assert weighter.state_dict()["logits"] == pytest.approx({"right": math.log(2) - 0.5, "up": 0.5})


def test_the_objective_that_helps_is_weighed_up() -> None:
    """From (1, −2) the way to (3, 1) leads up: in a few rounds `up` has more weight."""
    bench = problem().bench
    weighter = TapWeight(CARDS[0], CARDS[1:], pretraining_steps=1, fine_tuning_steps=1)
    weighter.round(bench)
    weights = weighter.weights()
    assert weights["up"] > weights["right"]


@pytest.mark.parametrize("made", [ForkMerge, TapWeight])
def test_the_state_of_a_run_over_other_tasks_is_refused(made: Any) -> None:
    state = made(CARDS[0], CARDS[1:]).state_dict()
    with pytest.raises(ConfigError, match="differ in: up"):
        made(CARDS[0], CARDS[1:2]).load_state_dict(state)


@pytest.mark.parametrize(
    ("made", "options", "message"),
    [
        (ForkMerge, {"steps": 0}, "option steps"),
        (ForkMerge, {"shares": True}, "option shares"),
        (ForkMerge, {"dev_rows": 0}, "option dev_rows"),
        (TapWeight, {"lr": -1}, "option lr"),
        (TapWeight, {"pretraining_steps": 1.5}, "option pretraining_steps"),
        (TapWeight, {"fine_tuning_steps": 0}, "option fine_tuning_steps"),
        (TapWeight, {"dev_batches": 0}, "option dev_batches"),
    ],
)
def test_a_senseless_option_is_refused(made: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(CARDS[0], CARDS[1:], **options)
