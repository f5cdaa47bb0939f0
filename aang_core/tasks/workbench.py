"""What a weighter trains with, and what a step measures for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from aang_core.errors import AangError

if TYPE_CHECKING:
    from torch import Generator

END_TASK = "end-task"
"""The name of the end task, in weights, logs, checkpoints and reports."""

Signal = Literal["cosine", "dot", "norm", "loss"]
"""What a step can measure for a task: of its body gradient g and the dev gradient v, cos(g, v),
⟨g, v⟩ and ‖g‖; and its loss."""

AGAINST_DEV: frozenset[Signal] = frozenset({"cosine", "dot"})
"""The signals that need v. The others cost no dev head and no pass over dev rows."""

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class StepSignals:
    """Gradient statistics of one step, by task name; the end task is included.

    A statistic that the weighter did not ask for is empty. The cosine of a zero gradient is zero.

    When the signals of several draws or steps are combined, a task's cosine and dot are summed over
    those that included the task and divided by the number of all, as in AANG's code; its norm and
    its loss are the mean over those that included it.

    Attributes:
        cosine: cos(g_k, v) by task.
        dot: ⟨g_k, v⟩ by task.
        norm: ‖g_k‖ by task.
        auxiliary: the same statistics of the weighted sum over the sampled auxiliary tasks, of
            their gradients Σ_k w_k g_k or losses Σ_k w_k L_k, with weights that sum to one.
        dev_norm: ‖v‖; None if no cosine and no dot was asked for, because v is then not computed.
        loss: L_k by task, the mean over the targets of its rows in the step, before the update and
            without its coefficient.

    Examples:
        >>> from aang_core import StepSignals
        >>> signals = StepSignals(
        ...     cosine={"end": 0.5, "a": -0.1},
        ...     dot={},
        ...     norm={},
        ...     auxiliary={"cosine": -0.1},
        ...     dev_norm=2.0,
        ... )
        >>> signals.tasks
        ('end', 'a')
    """

    cosine: Mapping[str, float]
    dot: Mapping[str, float]
    norm: Mapping[str, float]
    auxiliary: Mapping[Signal, float]
    dev_norm: float | None
    loss: Mapping[str, float] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the measured tasks, including the end task."""
        return tuple({**self.cosine, **self.dot, **self.norm, **self.loss})


def mean_signals(measured: Sequence[StepSignals]) -> StepSignals:
    """Combine the signals of several draws or steps; see `StepSignals`."""
    if len(measured) == 1:
        return measured[0]
    count = len(measured)
    lengths = [one.dev_norm for one in measured if one.dev_norm is not None]
    return StepSignals(
        cosine=_summed([one.cosine for one in measured], count),
        dot=_summed([one.dot for one in measured], count),
        norm=_mean([one.norm for one in measured]),
        auxiliary=_summed([one.auxiliary for one in measured], count),
        dev_norm=math.fsum(lengths) / len(lengths) if lengths else None,
        loss=_mean([one.loss for one in measured]),
    )


def _mean(parts: Sequence[Mapping[Name, float]]) -> dict[Name, float]:
    """The mean of each name over the parts that have it."""
    found: dict[Name, list[float]] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def _summed(parts: Sequence[Mapping[Name, float]], count: int) -> dict[Name, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: math.fsum(part.get(name, 0.0) for part in parts) / count for name in names}


class Update(Protocol):
    """A direction in the space of parameters; pass it back to the workbench.

    From `Workbench.trial` it is δ, the change that training made; from `Workbench.gradients` it is
    the gradient of a task's loss. It holds tensors of the size of the body and of the heads
    of its tasks.

    Examples:
        >>> from aang_core import Update
        >>> from aang_testing import RecordingWorkbench
        >>> update: Update = RecordingWorkbench("end", ["a"]).trial({"a": 1.0})
        >>> update.tasks
        ('a',)
    """

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that were trained or differentiated."""
        ...


@dataclass(frozen=True)
class DevLossAlong:
    """The end task's dev loss at θ + Σ α_t δ_t.

    Attributes:
        value: the loss.
        gradient: its derivative with respect to each α_t, in the order of the updates.

    Examples:
        >>> from aang_core import DevLossAlong
        >>> loss = DevLossAlong(0.7, [-0.2, 0.1])
        >>> [1.0 - 0.5 * slope for slope in loss.gradient]  # one step of gradient descent on α = 1
        [1.1, 0.95]
    """

    value: float
    gradient: Sequence[float]


def require_finite_score(score: float) -> float:
    """Refuse a dev score that is NaN or infinite, for every workbench.

    Returns:
        ``score``.

    Raises:
        AangError: it is NaN or infinite.
    """
    if not math.isfinite(score):
        raise AangError(f"the dev score is {score}: training has diverged; lower the learning rate")
    return score


class Workbench(Protocol):
    """What a weighter trains with.

    Most weighters need `sample` and `step` only. `gradients`, `dots` and `descend` are for
    weighters that combine the tasks' gradients themselves; `trial`, `apply`, `dev_loss`,
    `dev_score` and `snapshot` for those that try whole updates (αVIL, section 3). What a weighter
    does not call costs nothing.

    Examples:
        >>> from aang_core import Workbench
        >>> from aang_testing import RecordingWorkbench
        >>> bench: Workbench = RecordingWorkbench("end", ["a", "b"])  # a workbench for tests
        >>> sampled = bench.sample(1)
        >>> signals = bench.step({"end": 0.5, sampled[0]: 0.5}, frozenset({"cosine"}))
        >>> set(signals.cosine) == {"end", *sampled}
        True
    """

    @property
    def end_task(self) -> str:
        """Name of the end task."""
        ...

    @property
    def draws_per_step(self) -> int:
        """Number of draws of tasks and rows that make up one step: ``--draws-per-step``."""
        ...

    @property
    def steps_left(self) -> int:
        """Optimiser steps left in the run; a round of many steps may have to end early."""
        ...

    @property
    def generator(self) -> "Generator":
        """Source of every draw of the training loop, and of the weighter's own draws.

        Checkpoints save its state, so a weighter that draws only from it need not save any.
        """
        ...

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """Draw n auxiliary tasks without replacement; all of them for None.

        Args:
            n: number of tasks.
            weights: one for each auxiliary task, not negative. Tasks are drawn one after the other,
                each with a probability proportional to its weight among those that are left. None
                for equal probabilities.
        """
        ...

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """Take one optimiser step on Σ coefficient · loss over the given tasks.

        Signals are finite numbers. If a loss or gradient is not finite, training stops or, with
        ``--on-nan skip``, the step is skipped and returns None, so no weighter needs to check.

        Returns:
            The signals, or None in a step that does not measure them. Those are all steps if
            ``signals`` is empty, the steps that ``--meta-every`` skips, and, for a cosine or dot,
            the first steps of a training, before there are rows to fit the dev head to. Without
            cosine and dot there is no dev head and no dev gradient. With ``--weights-every`` above
            1, the mean over that many measured steps, after the last of them.
        """
        ...

    def step_over(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """Take one optimiser step on the mean of the losses of several draws.

        Each draw has its own coefficients, as in `step`, and its own share of the step's
        rows, and is measured on its own. The returned signals combine those of all draws.
        """
        ...

    def gradients(self, names: Sequence[str]) -> Sequence[Update] | None:
        """The gradient of each task's loss, over the body and the task's head.

        The tasks' rows are those of a step in which all tasks have the same weight. Each task costs
        a forward and a backward pass over its rows, and memory of the size of the body as long as
        its gradient is kept. No step is taken until `descend`.

        Args:
            names: the tasks, each once.

        Returns:
            A gradient for each name, in this order; None if a loss or gradient is not finite and
            ``--on-nan skip`` skips the step, which then counts as taken.

        Examples:
            >>> from aang_testing import RecordingWorkbench
            >>> vectors = {"end": [1.0, 0.0], "a": [-1.0, 2.0]}
            >>> bench = RecordingWorkbench("end", ["a"], gradient=vectors.__getitem__)
            >>> found = bench.gradients(["end", "a"])
            >>> bench.dots(found)
            [[1.0, -1.0], [-1.0, 5.0]]
            >>> bench.descend(found, [0.5, 0.5])
            >>> bench.descents
            [{'end': 0.5, 'a': 0.5}]
        """
        ...

    def dots(self, updates: Sequence[Update]) -> list[list[float]]:
        """The inner products ⟨u_i, u_j⟩ of updates over the body's parameters, ``[n][n]``."""
        ...

    def descend(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        of_heads: Sequence[float] | None = None,
    ) -> None:
        """Take one optimiser step with Σ_i c_i u_i as the gradient.

        The sum is clipped like any gradient, and the step counts as one of the run.

        Args:
            updates: what `gradients` returned.
            coefficients: c_i of the body's parameters; may be negative.
            of_heads: c_i of the heads' parameters, of which each task has its own; None for
                ``coefficients``.
        """
        ...

    def trial(
        self,
        coefficients: Mapping[str, float],
        *,
        fraction: float = 1.0,
        steps: int | None = None,
        at_most: int | None = None,
        offload: bool = False,
    ) -> Update:
        """Train the given tasks from the current parameters, then restore parameters and buffers.

        Every optimiser step takes a batch of each task and the loss Σ coefficient · loss. The
        steps count as steps of the run. Each trial has a new optimiser, at the learning rate of the
        round, so that all tasks are tried under the same conditions.

        Args:
            coefficients: loss weights by task.
            fraction: part of the rows of the largest task that the trial sees.
            steps: number of optimiser steps, 1 or more; None for as many as ``fraction`` needs.
            at_most: the largest number of steps, 1 or more; None for no limit.
            offload: keep δ on the CPU.
        """
        ...

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """θ ← θ + Σ α_t δ_t, over the body and the heads of the tasks that were tried.

        Buffers, such as running statistics, become a mean of their values before and after the
        trials, weighted by the α_t.
        """
        ...

    def dev_loss(
        self,
        updates: Sequence[Update],
        coefficients: Sequence[float],
        *,
        batches: int | None = None,
    ) -> DevLossAlong:
        """The dev loss at θ + Σ α_t δ_t, and its gradient with respect to α.

        Args:
            updates: the δ_t.
            coefficients: the α_t.
            batches: number of dev batches to take next; None for the whole dev set.
        """
        ...

    def dev_score(self, rows: int | None = None) -> float:
        """The dev metric of the current model over the dev set.

        Args:
            rows: number of dev rows to score: a random part of the dev set, the same throughout the
                run, so that two scores differ by the model alone. None, or more rows than there
                are, scores the whole dev set; so does a run that cannot score less.

        Raises:
            AangError: the score is not finite, so no weighter needs to check.
        """
        ...

    def snapshot(self) -> Callable[[], None]:
        """Save body and heads with their buffers, and return a function that restores them.

        It restores nothing else: the optimiser keeps its moments, steps stay counted, and tasks
        continue with their next rows.
        """
        ...
