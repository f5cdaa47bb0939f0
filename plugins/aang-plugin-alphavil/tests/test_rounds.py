"""Rounds of αVIL and DIW on problems small enough to work out by hand, through the real bench."""

from dataclasses import replace

import pytest
import torch
from aang_plugin_alphavil.alpha_vil import AlphaVil
from aang_plugin_alphavil.diw import Diw
from aang_testing import Pull, QuadraticProblem, quadratic_problem
from torch import Tensor

from tests.support.training import TrainingBench

RATE = 0.1


END = Pull("end", (3.0, 1.0))
RIGHT = Pull("right", (4.0, -2.0), stretch=2.0)
UP = Pull("up", (0.0, 5.0))


def problem(
    *, gains: bool = True, aux_rows: int = 4, warmup: float = 0.0, dev: Pull | None = None
) -> QuadraticProblem:
    """The end task wants (3, 1); helpers pull towards (4, -2) and (0, 5).

    The dev score is higher the nearer to the end task's centre, or always the same.
    """
    return quadratic_problem(
        END,
        [replace(RIGHT, rows=aux_rows), UP],
        lr=RATE,
        warmup=warmup,
        dev=dev,
        score=None if gains else lambda theta: 0.0,
    )


def centre_of(task: Pull) -> Tensor:
    return torch.tensor(task.centre, dtype=torch.float64)


def alone(theta: Tensor, task: Pull, weight: float, steps: int) -> Tensor:
    """δ of plain gradient descent, by hand: θ ← θ − lr · weight · stretch² (θ − c)."""
    start = theta.clone()
    stretch = torch.tensor([task.stretch**2, 1.0], dtype=torch.float64)
    for _ in range(steps):
        theta = theta - RATE * weight * stretch * (theta - centre_of(task))
    return theta - start


@pytest.mark.parametrize("weighter", [AlphaVil, Diw])
def test_the_first_round_learns_though_the_run_warms_up(weighter: type[AlphaVil | Diw]) -> None:
    """A warm-up begins with a rate of zero, which would make every update of the round none."""
    made, plain = problem(warmup=0.5), problem()
    for one in (made, plain):
        before = one.theta.detach().clone()
        weighter(one.end, one.auxiliaries).round(one.bench)
        assert not torch.equal(one.theta, before)
    assert torch.equal(made.theta, plain.theta)


def test_alpha_reaches_its_closed_form() -> None:
    """Two updates span the plane, so the best α takes the model to the end task's centre."""
    made = problem()
    theta = made.theta.detach().clone()
    tasks = [END, RIGHT]
    deltas = torch.stack([alone(theta, t, 0.5, 2) for t in tasks], dim=1)
    best = torch.linalg.solve(deltas, centre_of(END) - theta)
    weighter = AlphaVil(made.end, made.auxiliaries[:1], tuning_steps=400, lr=1.0, momentum=0.9)
    weighter.round(_Only(made.bench, "right"))
    alpha = weighter.record()["alpha"]
    assert [alpha["end"], alpha["right"]] == pytest.approx(best.tolist(), abs=1e-3)
    assert made.theta.tolist() == pytest.approx([3.0, 1.0], abs=1e-3)
    # 2 and 2 steps of the trials, none of the tuning.
    assert made.bench.steps == 4
    importance = weighter.record()["importance"]
    assert importance["end"] == pytest.approx(max(best[0].item(), 1e-6), abs=1e-3)


class _Only:
    """The bench with one auxiliary task to sample."""

    def __init__(self, bench: TrainingBench, name: str) -> None:
        self._bench = bench
        self._name = name

    def sample(self, n: int | None) -> tuple[str, ...]:
        return (self._name,)

    def __getattr__(self, name: str) -> object:
        return getattr(self._bench, name)


def test_one_round_of_alpha_vil_by_hand() -> None:
    """Trials at the shares of the weights, one α step with momentum, then the weights."""
    made = problem()
    theta = made.theta.detach().clone()
    tasks = [END, RIGHT, UP]
    deltas = torch.stack([alone(theta, t, 1 / 3, 2) for t in tasks], dim=1)
    alpha, velocity = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for _ in range(3):
        velocity = 0.5 * velocity + deltas.T @ (theta + deltas @ alpha - centre_of(END))
        alpha = alpha - 0.05 * velocity
    weighter = AlphaVil(made.end, made.auxiliaries, tuning_steps=3, lr=0.05)
    weighter.round(made.bench)
    assert list(weighter.record()["alpha"].values()) == pytest.approx(alpha.tolist(), rel=1e-12)
    assert list(weighter.record()["importance"].values()) == pytest.approx(alpha.tolist())
    total = sum(alpha.tolist())
    assert weighter.weights()["up"] == pytest.approx(alpha[2].item() / total)


def test_the_model_is_left_exactly_at_the_interpolation() -> None:
    """Bit for bit θ + Σ α_t δ_t, and s passes over dev besides the trials."""
    made = problem()
    before = made.theta.detach().clone()
    kept, passes = [], [0]
    handle = made.body.register_forward_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))

    class Watched(_Only):
        def sample(self, n: int | None) -> tuple[str, ...]:
            return ("right", "up")

        def trial(self, *given: object, **options: object) -> object:
            kept.append(self._bench.trial(*given, **options))  # type: ignore[arg-type]
            assert torch.equal(made.theta, before), "a trial puts the model back"
            return kept[-1]

    weighter = AlphaVil(made.end, made.auxiliaries, tuning_steps=7, lr=0.01)
    weighter.round(Watched(made.bench, ""))  # type: ignore[arg-type]
    handle.remove()
    expected = before
    for update, alpha in zip(kept, weighter.record()["alpha"].values(), strict=True):
        expected = expected + alpha * update.deltas[made.theta]
    assert torch.equal(made.theta.detach(), expected)
    assert passes[0] == 3 * 2 + 7, "three trials of two steps, seven dev passes"
    assert len(weighter.record()["dev_losses"]) == 7


@pytest.mark.parametrize(
    ("dev_batches", "passes"), [(None, 4), (1, 1), (3, 3)], ids=["whole", "one", "three"]
)
def test_alpha_is_tuned_on_the_whole_dev_set_or_on_batches(
    dev_batches: int | None, passes: int
) -> None:
    """Four batches are all of the 13 dev rows: the loss and its slope by hand over all of them."""
    made = problem(dev=replace(END, rows=13, row_weights=True))
    theta = made.theta.detach().clone()
    seen: list[list[float]] = []
    handle = made.body.register_forward_hook(
        lambda _, __, given, ___: None if made.body.training else seen.append(given["x"].tolist()),
        with_kwargs=True,
    )
    weighter = AlphaVil(
        made.end, made.auxiliaries, tuning_steps=2, lr=0.05, dev_batches=dev_batches
    )
    weighter.round(made.bench)
    handle.remove()
    assert len(seen) == 2 * passes
    assert {len(rows) for rows in seen[:-1]} <= {4, 1}
    if dev_batches is not None:
        return
    assert sorted(row for rows in seen[:4] for row in rows) == [float(row) for row in range(13)]
    tasks = [END, RIGHT, UP]
    deltas = torch.stack([alone(theta, t, 1 / 3, 2) for t in tasks], dim=1)
    weight = torch.arange(13, dtype=torch.float64).mean()
    alpha, velocity = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    losses = []
    for _ in range(2):
        away = theta + deltas @ alpha - centre_of(END)
        losses.append(0.5 * weight * away.square().sum())
        velocity = 0.5 * velocity + weight * deltas.T @ away
        alpha = alpha - 0.05 * velocity
    assert list(weighter.record()["alpha"].values()) == pytest.approx(alpha.tolist(), rel=1e-12)
    assert weighter.record()["dev_losses"] == pytest.approx([float(x) for x in losses], rel=1e-12)


def test_a_part_of_the_rows_and_updates_on_the_cpu() -> None:
    """Half of four rows in batches of two is one step a task."""
    made = problem()
    weighter = AlphaVil(made.end, made.auxiliaries, fraction=0.5, offload=True)
    weighter.round(made.bench)
    assert made.bench.steps == 3


def test_weights_never_reach_zero() -> None:
    """A task whose α is far below zero keeps the smallest weight, and training continues."""
    made = problem()
    weighter = AlphaVil(made.end, made.auxiliaries, tuning_steps=50, lr=2.0, momentum=0.0)
    for _ in range(3):
        weighter.round(made.bench)
    assert min(weighter.record()["importance"].values()) >= 1e-6
    assert sum(weighter.weights().values()) == pytest.approx(1.0)


def test_one_round_of_diw_by_hand() -> None:
    """Scores alone, a joint try that fails, weights moved by 0.1 of the differences, a second."""
    made = problem()
    weighter = Diw(made.end, made.auxiliaries)
    weighter.load_state_dict({**weighter.state_dict(), "best": -1.0})
    theta = made.theta.detach().clone()
    weighter.round(made.bench)
    record = weighter.record()
    tasks = {task.name: task for task in (END, RIGHT, UP)}
    for name, task in tasks.items():
        there = theta + alone(theta, task, 1.0, 2)
        score = -(there - centre_of(END)).norm().item()
        assert record["dev_scores"]["alone"][name] == pytest.approx(score)
    joint = record["dev_scores"]["joint"]
    assert len(joint) == 10, "no mixture of these short trainings comes as near as 1.0"
    weights = dict.fromkeys(tasks, 1.0)
    for score in joint:
        for name in weights:
            alone_score = record["dev_scores"]["alone"][name]
            weights[name] = max(weights[name] + 0.1 * (alone_score - score), 1e-6)
    assert record["importance"] == pytest.approx(weights)
    reached = -(made.theta.detach() - centre_of(END)).norm().item()
    assert reached == pytest.approx(max(joint)), "the best of the tries is kept"


def test_diw_takes_the_first_gain() -> None:
    """A joint training that beats the score so far ends the round."""
    made = problem()
    before = -(made.theta.detach() - centre_of(END)).norm().item()
    weighter = Diw(made.end, made.auxiliaries)
    weighter.round(made.bench)
    scores = weighter.record()["dev_scores"]
    assert scores["joint"][-1] > before
    assert scores["best"] == scores["joint"][-1]
    assert len(scores["joint"]) == 1


def test_diw_ends_where_nothing_can_improve() -> None:
    """After ten tries without a gain the round is over, every time."""
    made = problem(gains=False)
    weighter = Diw(made.end, made.auxiliaries)
    for _ in range(3):
        weighter.round(made.bench)
        assert len(weighter.record()["dev_scores"]["joint"]) == 10


def test_a_joint_training_sees_the_largest_task_once() -> None:
    """Ten rows of one task in batches of two are five steps for all."""
    made = problem(aux_rows=10)
    made.bench.trial({"end": 0.5, "right": 0.5})
    assert made.bench.steps == 5
