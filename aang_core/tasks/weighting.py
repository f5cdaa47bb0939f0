"""Weighters decide the weight of every task and drive the rounds of training.

The trainer knows no weighter by name. It calls `Weighter.round` until all steps of the run
are done. The weighter acts through the methods of the `Workbench`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from aang_core.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from torch import Generator

Signal = Literal["cosine", "dot", "norm"]
"""A statistic of a task's body gradient g against the dev gradient v: cos(g, v), ⟨g, v⟩, ‖g‖."""

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class TaskCard:
    """What a weighter knows of a task.

    Attributes:
        name: the task's name.
        factors: what the task is composed of, such as ``{"transform": "mask", ...}``.
        free: whether the task trains in the end task's own pass through the encoder, on its rows,
            so that a step which measures nothing costs the same with it as without it.

    Examples:
        >>> from aang_core import TaskCard
        >>> TaskCard("task/mask/bidirectional/denoise", {"transform": "mask"}).factors["transform"]
        'mask'
    """

    name: str
    factors: Mapping[str, str] = field(default_factory=dict)
    free: bool = False


@dataclass(frozen=True)
class StepSignals:
    """Gradient statistics of one step, by task name; the end task is included.

    A statistic that the weighter did not ask for is empty. The cosine of a zero gradient is zero.

    When the signals of several draws or steps are combined, a task's cosine and dot are summed over
    those that included the task and divided by the number of all, as in AANG's code; its norm is
    the mean over those that included it.

    Attributes:
        cosine: cos(g_k, v) by task.
        dot: ⟨g_k, v⟩ by task.
        norm: ‖g_k‖ by task.
        auxiliary: the same statistics of Σ_k w_k g_k, the weighted sum over the sampled auxiliary
            tasks, with weights that sum to one.
        dev_norm: ‖v‖.

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
    dev_norm: float

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the measured tasks, including the end task."""
        return tuple({**self.cosine, **self.dot, **self.norm})


def mean_signals(measured: Sequence[StepSignals]) -> StepSignals:
    """Combine the signals of several draws or steps; see `StepSignals`."""
    if len(measured) == 1:
        return measured[0]
    count = len(measured)
    norms: dict[str, list[float]] = {}
    for one in measured:
        for name, norm in one.norm.items():
            norms.setdefault(name, []).append(norm)
    return StepSignals(
        cosine=_summed([one.cosine for one in measured], count),
        dot=_summed([one.dot for one in measured], count),
        norm={name: math.fsum(found) / len(found) for name, found in norms.items()},
        auxiliary=_summed([one.auxiliary for one in measured], count),
        dev_norm=math.fsum(one.dev_norm for one in measured) / count,
    )


def _summed(parts: Sequence[Mapping[Name, float]], count: int) -> dict[Name, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: math.fsum(part.get(name, 0.0) for part in parts) / count for name in names}


class Update(Protocol):
    """δ, the change that a trial made to the parameters; pass it back to the workbench.

    Examples:
        >>> from aang_core import Update
        >>> from aang_core.testing import RecordingWorkbench
        >>> update: Update = RecordingWorkbench("end", ["a"]).trial({"a": 1.0})
        >>> update.tasks
        ('a',)
    """

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that were trained."""
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


class Workbench(Protocol):
    """What a weighter trains with.

    Most weighters need `sample` and `step` only. The other methods are for weighters
    that try whole updates and look at the dev score (αVIL, section 3).

    Examples:
        >>> from aang_core import Workbench
        >>> from aang_core.testing import RecordingWorkbench
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
            weights: of every auxiliary task, not negative. Tasks are drawn one after the other,
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
            ``signals`` is empty (then there is no dev head and no dev gradient), the steps that
            ``--meta-every`` skips, and the first steps of a training, before there are rows to fit
            the dev head to. With ``--weights-every`` above 1, the mean over that many measured
            steps, after the last of them.
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

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> Update:
        """Train the given tasks from the current parameters, then restore the parameters.

        Every optimiser step takes a batch of each task and the loss Σ coefficient · loss. The trial
        takes as many steps as it needs to see ``fraction`` of the rows of the largest task, and
        they count as steps of the run. Each trial has a new optimiser, at the learning rate of the
        round, so that all tasks are tried under the same conditions.

        Args:
            coefficients: loss weights by task.
            fraction: part of the rows of the largest task.
            offload: keep δ on the CPU.
        """
        ...

    def apply(self, updates: Sequence[Update], coefficients: Sequence[float]) -> None:
        """θ ← θ + Σ α_t δ_t, over the body and the heads of the tasks that were tried."""
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
        """
        ...

    def snapshot(self) -> Callable[[], None]:
        """Save body and heads, and return a function that restores them.

        It restores nothing else: the optimiser keeps its moments, steps stay counted, and tasks
        continue with their next rows.
        """
        ...


class Weighter(Protocol):
    """A strategy that decides task weights and drives a round of training.

    Made by calling the registered target as ``target(end_task, auxiliaries, **options)`` with a
    `TaskCard` for the end task and one for each auxiliary task.

    A weighter may also have ``round_steps``, the number of optimiser steps in one of its rounds; a
    run with fewer steps is refused before it begins.

    Attributes:
        signals: what the weighter measures in its steps; an empty set costs nothing.
        uses_auxiliaries: False if the weighter trains the end task alone, so that no other task
            needs to be built.

    Examples:
        >>> from aang_core import TaskCard, Weighter
        >>> from aang_core.testing import RecordingWorkbench
        >>> class EndTaskOnly:
        ...     signals = frozenset()
        ...     uses_auxiliaries = False
        ...     def __init__(self, end_task, auxiliaries):
        ...         self.names = [end_task.name, *(card.name for card in auxiliaries)]
        ...     def round(self, bench):
        ...         bench.step({bench.end_task: 1.0}, self.signals)
        ...     def weights(self):
        ...         return {name: float(name == self.names[0]) for name in self.names}
        ...     def record(self):
        ...         return {}
        ...     def state_dict(self):
        ...         return {}
        ...     def load_state_dict(self, state):
        ...         pass
        >>> weighter: Weighter = EndTaskOnly(TaskCard("end"), [TaskCard("a")])
        >>> bench = RecordingWorkbench("end", ["a"])
        >>> weighter.round(bench)
        >>> bench.coefficients
        [{'end': 1.0}]
    """

    signals: frozenset[Signal]
    uses_auxiliaries: bool

    def round(self, bench: Workbench) -> None:
        """Run one round of training: one step for most weighters, an epoch for some."""
        ...

    def weights(self) -> Mapping[str, float]:
        """Current weight of every task, including the end task; non-negative, with a sum of one."""
        ...

    def record(self) -> Mapping[str, Any]:
        """Values to log in ``weights.jsonl`` besides the weights; JSON values by name."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs, as JSON values keyed by names."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


def require_whole_round(weighter: Weighter, steps: int) -> None:
    """Refuse a weighter whose round is longer than the run.

    Args:
        weighter: the weighter; only its ``round_steps`` are read.
        steps: optimiser steps of the run.

    Raises:
        ConfigError: a round takes more steps than the run has.
    """
    needed = getattr(weighter, "round_steps", None)
    if needed is not None and needed > steps:
        raise ConfigError(
            f"the weighter learns from rounds of {needed} steps, and the run has {steps}: it would "
            f"learn nothing. Give the weighter shorter rounds, or --steps {needed} or more"
        )


def require_several_draws(
    weighter: object, draws: int, option: str, *, called: str = "this weighter"
) -> None:
    """Refuse a weighter whose round cannot be made of several draws.

    Args:
        weighter: one made already, or its class; only ``several_draws`` is looked at.
        draws: how many draws a step is to be made of.
        option: how the user asked for them, for the message.
        called: what the user calls the weighter, for the message.

    Raises:
        ConfigError: it takes one draw a step.
    """
    if draws > 1 and not getattr(weighter, "several_draws", False):
        raise ConfigError(
            f"{option}: a round of {called} is no step made of several draws; leave the option out"
        )


class StepwiseWeighter(ABC):
    """A weighter whose round is one step: sample, step, observe.

    With ``--draws-per-step`` above 1 a step consists of several draws, each with its own sample and
    the current weights.

    Attributes:
        sample_size: number of auxiliary tasks that a draw takes; None for all.
        normalised: False declares that the coefficients of a step may sum to less than one.
        several_draws: whether a round respects ``--draws-per-step``.
        always: auxiliary tasks that every draw takes, besides ``sample_size`` of the others.

    Examples:
        >>> from aang_core import StepwiseWeighter, TaskCard
        >>> class Equal(StepwiseWeighter):
        ...     def __init__(self, end_task, auxiliaries):
        ...         self.names = [end_task.name, *(card.name for card in auxiliaries)]
        ...     def coefficients(self, sampled):
        ...         return {self.names[0]: 1 / (1 + len(sampled))} | dict.fromkeys(
        ...             sampled, 1 / (1 + len(sampled))
        ...         )
        ...     def weights(self):
        ...         return self.coefficients(self.names[1:])
        ...     def state_dict(self):
        ...         return {}
        ...     def load_state_dict(self, state):
        ...         pass
        >>> Equal(TaskCard("end"), [TaskCard("a")]).weights()
        {'end': 0.5, 'a': 0.5}
    """

    signals: frozenset[Signal] = frozenset()
    uses_auxiliaries = True
    normalised = True
    several_draws = True
    sample_size: int | None = None
    always: tuple[str, ...] = ()

    def round(self, bench: Workbench) -> None:
        samples = [self._sample(bench) for _ in range(bench.draws_per_step)]
        measured = bench.step_over([self.coefficients(s) for s in samples], self.signals)
        if measured is not None:
            self.observe([name for name in measured.tasks if name != bench.end_task], measured)

    def _sample(self, bench: Workbench) -> tuple[str, ...]:
        """The tasks of one draw: those of `always`, and as many others as are sampled."""
        drawn = bench.sample(self.sample_size, self.sample_weights())
        return (*self.always, *(name for name in drawn if name not in self.always))

    def sample_weights(self) -> Mapping[str, float] | None:
        """Weight of every auxiliary task in the draw of the step; None for equal probabilities.

        Tasks of `always` need no draw: give them zero.
        """
        return None

    @abstractmethod
    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        """Loss weights of the end task and the sampled tasks; non-negative, with a sum of one.

        A weighter that is not `normalised` may drop a part of the loss: its coefficients sum
        to at most one. Its `weights` still sum to one.
        """

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Learn from a step with signals; not called if `signals` is empty."""
        raise PluginError(
            f"weighter {type(self).__name__} asks for {', '.join(sorted(self.signals))} but has "
            "no observe() that takes them; write one, or leave signals empty"
        )

    @abstractmethod
    def weights(self) -> Mapping[str, float]:
        """See `Weighter.weights`."""

    def record(self) -> Mapping[str, Any]:
        return {}

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """See `Weighter.state_dict`."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Weighter.load_state_dict`."""
