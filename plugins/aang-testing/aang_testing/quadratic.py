"""A real training of two numbers, small enough to work out by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from aang_core.gradients import EndTaskHead, StreamEngine
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.tasks.weighting import TaskCard
from aang_core.training.bench import RunTasks, StepSettings, TrainingBench
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.rows import RowBudget


@dataclass
class Pull(Task):
    """A task that pulls θ, two numbers, towards a point: ½‖s ∘ (θ − c)‖² for every row.

    Args:
        name: the task's name.
        centre: c.
        factors: what a weighter is told that the task is composed of.
        stretch: first component of s; the second is 1.
        rows: number of rows.
        row_weights: let the loss of row i count i-fold, so that it matters which rows are taken.
        head: a module without parameters.

    Examples:
        >>> import torch
        >>> from aang_testing import Pull
        >>> pull = Pull("a", (4.0, -2.0))
        >>> pull.losses(pull.head, torch.tensor([[1.0, -2.0]], dtype=torch.float64), {}).sums
        tensor([4.5000], dtype=torch.float64)
    """

    name: str
    centre: tuple[float, float]
    factors: Mapping[str, str] = field(default_factory=dict)
    stretch: float = 1.0
    rows: int = 4
    row_weights: bool = False
    head: nn.Module = field(default_factory=nn.Identity)

    def __len__(self) -> int:
        return self.rows

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        """See :meth:`aang_core.Task.batch`; the input ``x`` is the numbers of the rows."""
        numbers = rows.double()
        return Batch({"x": numbers}, {"weight": numbers} if self.row_weights else {}, len(rows))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """See :meth:`aang_core.Task.losses`."""
        centre = torch.tensor(self.centre, dtype=torch.float64)
        stretch = torch.tensor([self.stretch, 1.0], dtype=torch.float64)
        losses = 0.5 * (stretch * (head(features) - centre)).square().sum(dim=1)
        losses = losses * targets.get("weight", 1.0)
        return RowLosses(losses, torch.ones_like(losses))


class _Point(nn.Module):
    """θ, the same for every row."""

    def __init__(self, start: tuple[float, float]) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.theta.expand(len(x), 2)


@dataclass(frozen=True)
class QuadraticProblem:
    """What `quadratic_problem` returns.

    Attributes:
        bench: the workbench of a real training.
        body: the module that holds θ.
        theta: θ, float64 ``[2]``; training changes it in place.
        end: the end task's card.
        auxiliaries: the cards of the other tasks.
    """

    bench: TrainingBench
    body: nn.Module
    theta: nn.Parameter
    end: TaskCard
    auxiliaries: list[TaskCard]


def quadratic_problem(
    end: Pull,
    auxiliaries: Sequence[Pull],
    *,
    start: tuple[float, float] = (1.0, -2.0),
    lr: float = 0.1,
    warmup: float = 0.0,
    steps: int = 1000,
    seed: int = 0,
    dev: Task | None = None,
    score: Callable[[Tensor], float] | None = None,
) -> QuadraticProblem:
    """A training whose every step can be computed by hand: plain gradient descent on θ.

    For a weighter with a round of its own, to which a `RecordingWorkbench` would only return
    made-up updates and scores.

    Args:
        end: the end task.
        auxiliaries: the other tasks.
        start: θ to start from.
        lr: the learning rate.
        warmup: part of the steps in which the learning rate rises.
        steps: optimiser steps of the run.
        seed: seed of the draws of tasks and rows.
        dev: the end task over the dev rows; None for ``end`` itself.
        score: the dev score at θ; None for −‖θ − c‖ with the c of ``end``.

    Returns:
        The workbench and what it trains.

    Examples:
        >>> from aang_testing import Pull, quadratic_problem
        >>> made = quadratic_problem(Pull("end", (3.0, 1.0)), [Pull("a", (4.0, -2.0))])
        >>> _ = made.bench.step({"end": 0.5, "a": 0.5}, frozenset())
        >>> made.theta.tolist()  # (1, -2) - 0.1 * (½ (-2, -3) + ½ (-3, 0))
        [1.25, -1.85]
        >>> round(made.bench.dev_score(), 4)
        -3.3444
    """
    body, centre = _Point(start), torch.tensor(end.centre, dtype=torch.float64)
    settings = OptimizerSettings(
        lr=lr,
        head_lr=lr,
        weight_decay=0.0,
        warmup=warmup,
        max_grad_norm=1e9,
        optimizer="sgd",
        momentum=0.0,
        schedule="constant",
    )

    def scored(rows: int | None) -> float:
        theta = body.theta.detach()
        return -(theta - centre).norm().item() if score is None else score(theta)

    bench = TrainingBench(
        body,
        RunTasks(end, end if dev is None else dev, auxiliaries),
        StreamEngine(body, EndTaskHead()),
        Optimization(body, [], settings, steps=steps),
        StepSettings(RowBudget(end_task=2, dev=4, auxiliary=4)),
        generator=torch.Generator().manual_seed(seed),
        score=scored,
    )
    cards = [TaskCard(task.name, task.factors) for task in auxiliaries]
    return QuadraticProblem(bench, body, body.theta, TaskCard(end.name, end.factors), cards)
