"""AutoSeM's first stage: rounds, rewards, and learned preferences."""

import json
import math
from typing import Any

import pytest
from aang_plugin_bandit.autosem import AutoSem
from aang_plugin_bandit.beta_arms import GRID
from aang_testing import Pull, RecordingWorkbench, check_weighter

from aang_core import AangError, ConfigError, TaskCard

from .quadratics import problem

END, CARDS = TaskCard("end"), [TaskCard("a"), TaskCard("b")]


class Scripted(RecordingWorkbench):
    """Whose dev scores are given."""

    def __init__(self, *scores: float, **options: Any) -> None:
        left = iter(scores)
        super().__init__("end", ["a", "b"], score=lambda coefficients: next(left), **options)


@pytest.mark.parametrize("intervals", [32, pytest.param(GRID, marks=pytest.mark.full)])
def test_it_keeps_the_contract(intervals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the weights, which take most of the time, are not so exact."""
    monkeypatch.setattr("aang_plugin_bandit.beta_arms.GRID", intervals)
    check_weighter(AutoSem)
    check_weighter(lambda end, others: AutoSem(end, others, k=1, decay=0.0, end_task_weight=0.5))
    check_weighter(lambda end, others: AutoSem(end, others, decay=1.0, prior=0.1, dev_rows=None))


def test_a_round_trains_one_task_for_k_steps_and_measures_nothing() -> None:
    bench = Scripted(0.1, 0.2)
    weighter = AutoSem(END, CARDS, k=3, dev_rows=7)
    weighter.round(bench)
    arm = weighter.record()["arm"]
    expected = {"end": 1.0} if arm == "end" else {"end": 0.0, arm: 1.0}
    assert bench.coefficients == [expected] * 3
    assert bench.signals == [frozenset()] * 3
    assert bench.dev_rows == [7, 7], "before the first round and after it"


def test_rewards_by_hand() -> None:
    """A score that rises or stays is rewarded, one that falls is not; γ = 0.3 fades all arms."""
    bench = Scripted(0.5, 0.5, 0.4, 0.6)
    weighter = AutoSem(END, CARDS, k=1)
    counts = {name: [1.0, 1.0] for name in ("end", "a", "b")}
    for reward in (1, 0, 1):
        weighter.round(bench)
        counts = {n: [0.7 * x + 0.3 for x in pair] for n, pair in counts.items()}
        arm = weighter.record()["arm"]
        counts[arm][0] += reward
        counts[arm][1] += 1 - reward
        assert weighter.record()["reward"] == reward
        assert weighter.state_dict()["arms"] == {n: pytest.approx(p) for n, p in counts.items()}


def test_the_end_task_may_be_trained_beside_the_others() -> None:
    weighter = AutoSem(END, CARDS, end_task_weight=0.4)
    # Each arm has a third of the chances: 0.4 + 0.6/3 for the end task.
    assert weighter.weights() == pytest.approx({"end": 0.6, "a": 0.2, "b": 0.2}, abs=1e-6)
    bench = RecordingWorkbench("end", ["a", "b"])
    for _ in range(20):
        weighter.round(bench)
    assert {"end": 0.4, "a": 0.6} in bench.coefficients


def test_a_round_that_the_run_cuts_short_teaches_nothing() -> None:
    bench = Scripted(0.5, 0.6, steps=7)
    weighter = AutoSem(END, CARDS, k=5)
    weighter.round(bench)
    before = weighter.state_dict()
    weighter.round(bench)
    assert len(bench.coefficients) == 7
    assert weighter.state_dict() == before
    assert "reward" not in weighter.record()


def test_divergence_is_told() -> None:
    weighter = AutoSem(END, CARDS)
    before = weighter.state_dict()
    with pytest.raises(AangError, match="diverged"):
        weighter.round(Scripted(math.nan))
    assert weighter.state_dict() == before


@pytest.mark.parametrize(
    "options",
    [
        *({"k": value} for value in (0, -1, 2.0, "3", True, None)),
        *({"decay": value} for value in (-0.1, 1.1, math.nan)),
        *({"prior": value} for value in (0.05, -1, math.inf)),
        *({"end_task_weight": value} for value in (-0.1, 1, "half")),
        *({"dev_rows": value} for value in (0, 2.5, True)),
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"option {name}"):
        AutoSem(END, CARDS, **options)


@pytest.mark.parametrize("seed", range(6))
def test_it_comes_to_prefer_what_helps(seed: int) -> None:
    """One task pulls where the end task wants to be, two pull far away."""
    made = problem(
        [Pull("helps", (0.0, 0.0)), Pull("harms", (9.0, -9.0)), Pull("hurts", (-9.0, -9.0))],
        seed=seed,
    )
    weighter = AutoSem(made.end, made.auxiliaries, k=2, decay=0.1)
    for _ in range(60):
        weighter.round(made.bench)
    weights, utilities = weighter.weights(), weighter.record()["utilities"]
    assert utilities["helps"] > max(utilities["harms"], utilities["hurts"])
    assert weights["helps"] + weights["end"] > 0.75, "a half before the first round"
    assert made.bench.steps == 120


def test_going_on_from_a_state_is_going_on() -> None:
    """The draws are the bench's; what the weighter holds goes through JSON."""
    tasks = [Pull("helps", (0.0, 0.0)), Pull("harms", (9.0, -9.0))]
    whole = problem(tasks)
    weighter = AutoSem(whole.end, whole.auxiliaries, k=2)
    for _ in range(5):
        weighter.round(whole.bench)
    state = json.loads(json.dumps(weighter.state_dict()))
    again, resumed = problem(tasks), AutoSem(whole.end, whole.auxiliaries, k=2)
    resumed.load_state_dict(state)
    again.bench.load_state_dict(whole.bench.state_dict())
    for _ in range(5):
        weighter.round(whole.bench)
        resumed.round(again.bench)
    assert resumed.state_dict() == weighter.state_dict()
    assert again.theta.tolist() == whole.theta.tolist()
