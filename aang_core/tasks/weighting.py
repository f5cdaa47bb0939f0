"""Weighters decide the weight of every task and drive the rounds of training.

The trainer knows no weighter by name. It calls `Weighter.round` until all steps of the run
are done. The weighter acts through the methods of the `Workbench`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aang_core.errors import ConfigError, PluginError
from aang_core.tasks.workbench import Signal, StepSignals, Workbench

Value = TypeVar("Value")


@dataclass(frozen=True)
class TaskCard:
    """What a weighter knows about a task.

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


class Weighter(ABC):
    """A strategy that decides task weights and drives a round of training; the base class.

    Made by calling the registered target as ``target(end_task, auxiliaries, **options)`` with a
    `TaskCard` for the end task and one for each auxiliary task.

    Attributes:
        signals: what the weighter measures in its steps; an empty set costs nothing.
        uses_auxiliaries: False if the weighter trains the end task alone, so that no other task
            needs to be built.
        normalised: False declares that the coefficients of a step may sum to less than one.
        several_draws: whether a round respects ``--draws-per-step``.
        round_steps: optimiser steps of a round, if it has more than one; a run with fewer steps is
            refused before it begins.

    Examples:
        >>> from aang_core import TaskCard, Weighter
        >>> from aang_testing import RecordingWorkbench
        >>> class EndTaskOnly(Weighter):
        ...     uses_auxiliaries = False
        ...     def __init__(self, end_task, auxiliaries):
        ...         self.names = [end_task.name, *(card.name for card in auxiliaries)]
        ...     def round(self, bench):
        ...         bench.step({bench.end_task: 1.0}, self.signals)
        ...     def weights(self):
        ...         return {name: float(name == self.names[0]) for name in self.names}
        >>> weighter = EndTaskOnly(TaskCard("end"), [TaskCard("a")])
        >>> bench = RecordingWorkbench("end", ["a"])
        >>> weighter.round(bench)
        >>> bench.coefficients
        [{'end': 1.0}]
    """

    signals: frozenset[Signal] = frozenset()
    uses_auxiliaries: bool = True
    normalised: bool = True
    several_draws: bool = False
    round_steps: int | None = None

    @abstractmethod
    def round(self, bench: Workbench) -> None:
        """Run one round of training: one step for most weighters, an epoch for some."""

    @abstractmethod
    def weights(self) -> Mapping[str, float]:
        """Current weight of every task, including the end task; non-negative, with a sum of one."""

    def record(self) -> Mapping[str, Any]:
        """Values to log in ``weights.jsonl`` besides the weights; JSON values by name."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs, as new JSON values keyed by names."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; by default there is no state."""
        return


SUM_TOLERANCE = 1e-4
"""How far a sum of weights may be from one; a softmax in single precision is that accurate."""


def problem_of_sum(weights: Iterable[float], *, normalised: bool = True) -> str | None:
    """What is wrong with the sum of weights; used at run time and in the checks of plug-ins.

    Args:
        weights: the weights.
        normalised: whether they must sum to one, or to one at most.

    Returns:
        What was expected and found; None if the sum is right.

    Examples:
        >>> problem_of_sum([0.5, 1.0])
        'expected 1, got 1.5; divide each by their sum'
    """
    total = math.fsum(weights)
    if total <= 1 + SUM_TOLERANCE and (not normalised or total >= 1 - SUM_TOLERANCE):
        return None
    expected = "1" if normalised else "1 at most"
    return f"expected {expected}, got {total:.6g}; divide each by their sum"


def lacks_observe(weighter: object) -> bool:
    """Whether a step-wise weighter asks for signals that it has no `observe` for."""
    if not isinstance(weighter, StepwiseWeighter) or not weighter.signals:
        return False
    made = type(weighter)
    return made.round is StepwiseWeighter.round and made.observe is StepwiseWeighter.observe


def require_whole_round(weighter: Weighter, steps: int) -> None:
    """Refuse a weighter whose round is longer than the run.

    Args:
        weighter: the weighter; only its ``round_steps`` are read.
        steps: optimiser steps of the run.

    Raises:
        ConfigError: a round takes more steps than the run has.
    """
    needed = weighter.round_steps
    if needed is not None and needed > steps:
        raise ConfigError(
            f"the weighter learns from rounds of {needed} steps, and the run has {steps}: it would "
            f"learn nothing. Give the weighter shorter rounds, or --steps {needed} or more"
        )


def require_several_draws(
    weighter: Weighter | type[Weighter],
    draws: int,
    option: str,
    *,
    called: str = "this weighter",
) -> None:
    """Refuse a weighter whose round cannot be made of several draws.

    Args:
        weighter: a weighter or its class; only ``several_draws`` is read.
        draws: how many draws a step is to be made of.
        option: how the user asked for them, for the message.
        called: what the user calls the weighter, for the message.

    Raises:
        ConfigError: it takes only one draw a step.
    """
    if draws > 1 and not weighter.several_draws:
        raise ConfigError(
            f"{option}: a round of {called} is no step made of several draws; leave the option out"
        )


class StepwiseWeighter(Weighter):
    """A weighter whose round is one step: sample, step, observe.

    With ``--draws-per-step`` above 1 a step consists of several draws, each with its own sample and
    the current weights.

    Attributes:
        sample_size: number of auxiliary tasks that a draw takes; None for all.
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

    several_draws = True
    sample_size: int | None = None
    always: tuple[str, ...] = ()

    def round(self, bench: Workbench) -> None:
        measured = bench.step_over(self.draws(bench), self.signals)
        if measured is not None:
            self.observe([name for name in measured.tasks if name != bench.end_task], measured)

    def draws(self, bench: Workbench) -> list[Mapping[str, float]]:
        """Sample the tasks of a step, and return the coefficients of each of its draws."""
        samples = [self._sample(bench) for _ in range(bench.draws_per_step)]
        return [self.coefficients(sampled) for sampled in samples]

    def _sample(self, bench: Workbench) -> tuple[str, ...]:
        """The tasks of one draw: those of `always`, and as many others as are sampled."""
        if not self.always:
            return bench.sample(self.sample_size, self.sample_weights())
        others = [name for name in bench.sample(None) if name not in self.always]
        if self.sample_size is None or self.sample_size >= len(others):
            return (*self.always, *others)
        weights = self.sample_weights()
        odds = dict.fromkeys(others, 1.0) if weights is None else dict(weights)
        odds |= dict.fromkeys(self.always, 0.0)
        return (*self.always, *bench.sample(self.sample_size, odds))

    def sample_weights(self) -> Mapping[str, float] | None:
        """Weight of every auxiliary task in the draw of the step; None for equal probabilities.

        Tasks of `always` are not drawn, so their weights have no effect.
        """
        return None

    @abstractmethod
    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        """Loss weights of the end task and the sampled tasks; non-negative, with a sum of one.

        A weighter that is not `normalised` may drop a part of the loss: its coefficients sum
        to at most one. Its `weights` still sum to one.
        """

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Learn from a step with signals; a weighter that asks for signals must override it."""
        raise PluginError(
            f"weighter {type(self).__name__} asks for {', '.join(sorted(self.signals))} but has "
            "no observe() that takes them; write one, or leave signals empty"
        )

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """See `Weighter.state_dict`."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Weighter.load_state_dict`."""


class SingleTask(Weighter):
    """Trains the end task alone: the fine-tuning that every other weighter is compared with."""

    uses_auxiliaries = False
    several_draws = True

    def __init__(self, end_task: TaskCard, auxiliaries: Sequence[TaskCard]) -> None:
        self._end_task = end_task.name
        self._names = [end_task.name, *(card.name for card in auxiliaries)]

    def round(self, bench: Workbench) -> None:
        bench.step_over([{self._end_task: 1.0}] * bench.draws_per_step, self.signals)

    def weights(self) -> Mapping[str, float]:
        return {name: float(name == self._end_task) for name in self._names}


def softmax(logits: Mapping[str, float]) -> dict[str, float]:
    """Turn logits into weights: the exponential of each over the sum of all.

    The highest logit is subtracted first, so that no exponential overflows.

    Examples:
        >>> from aang_core import softmax
        >>> softmax({"end-task": 0.0, "denoise": 0.0})
        {'end-task': 0.5, 'denoise': 0.5}
    """
    highest = max(logits.values(), default=0.0)
    powers = {name: math.exp(logit - highest) for name, logit in logits.items()}
    total = math.fsum(powers.values())
    return {name: power / total for name, power in powers.items()}


def restored_by_task(saved: Mapping[str, Value], tasks: Iterable[str]) -> dict[str, Value]:
    """The saved values of these tasks, for the `load_state_dict` of a weighter.

    Args:
        saved: a value by task, from the state that is restored.
        tasks: the tasks of this run that have one.

    Returns:
        The values in the order of ``tasks``.

    Raises:
        ConfigError: ``saved`` is for other tasks; the message names those that differ.

    Examples:
        >>> from aang_core import ConfigError, restored_by_task
        >>> restored_by_task({"a": 0.5, "end": -0.5}, ["end", "a"])
        {'end': -0.5, 'a': 0.5}
        >>> try:
        ...     restored_by_task({"a": 0.5, "end": -0.5}, ["end", "b"])
        ... except ConfigError as error:
        ...     print(str(error).split(";")[1])
         they differ in: a, b. Continue with the space and the end task of the saved run
    """
    names = [*tasks]
    if saved.keys() != set(names):
        odd = ", ".join(sorted(saved.keys() ^ set(names)))
        raise ConfigError(
            f"the saved weights belong to other tasks than this run's; they differ in: {odd}. "
            "Continue with the space and the end task of the saved run"
        )
    return {name: saved[name] for name in names}
