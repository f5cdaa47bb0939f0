"""Weighters decide the weight of every task and drive the rounds of training.

The trainer knows no weighter by name. It calls :meth:`Weighter.round` until the budget of steps is
spent; the weighter acts through the few verbs of the :class:`Workbench`.
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
    """What a weighter may know of a task: its name and what it is composed of."""

    name: str
    factors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepSignals:
    """Gradient statistics of one step, by task name; the end task is among them.

    A statistic that was not asked for is empty. ``auxiliary`` holds the same statistics of the
    weighted sum of the sampled auxiliary tasks, Σ_k w_k g_k, with the weights normalised to one.
    ``dev_norm`` is ‖v‖. The cosine of a zero gradient is zero.

    Of several draws or steps together, a task's cosine and dot are summed over those that it was in
    and divided by the number of all, as in AANG's code; its norm is the mean over those it was in.
    """

    cosine: Mapping[str, float]
    dot: Mapping[str, float]
    norm: Mapping[str, float]
    auxiliary: Mapping[Signal, float]
    dev_norm: float

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the measured tasks, the end task among them."""
        return tuple({**self.cosine, **self.dot, **self.norm})


def mean_signals(measured: Sequence[StepSignals]) -> StepSignals:
    """The signals of several draws or steps together; see :class:`StepSignals`."""
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
    """δ, what a trial changed; to be handed back to the workbench."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that were trained."""
        ...


@dataclass(frozen=True)
class DevLossAlong:
    """The end task's dev loss at θ + Σ α_t δ_t.

    gradient: its derivative by each α_t, in the order of the updates.
    """

    value: float
    gradient: Sequence[float]


class Workbench(Protocol):
    """The verbs with which a weighter trains.

    Most weighters need :meth:`sample` and :meth:`step` only. Those that look at what whole updates
    do to the dev score (αVIL, section 3) try tasks out with the others.
    """

    @property
    def end_task(self) -> str:
        """Name of the end task."""
        ...

    @property
    def draws_per_step(self) -> int:
        """How many draws of tasks and rows a step should be made of: ``--draws-per-step``."""
        ...

    @property
    def steps_left(self) -> int:
        """Optimiser steps that the run still has; a round of many steps may end before its own."""
        ...

    @property
    def generator(self) -> "Generator":
        """Source of every draw of the training loop; a weighter draws from it too.

        Checkpoints hold its state, so a weighter that draws from it alone has nothing to save.
        """
        ...

    def sample(self, n: int | None, weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """n auxiliary tasks without replacement; all of them for None.

        Args:
            n: how many.
            weights: of every auxiliary task, not negative: one task after the other is drawn with
                a probability in proportion to its weight among those that are left. None for even
                ones.
        """
        ...

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """One optimiser step on Σ coefficient · loss over the tasks named.

        Measures ``signals`` on the way. With no signals asked for there is no dev head and no dev
        gradient, and None is returned; so it is in steps that ``--meta-every`` leaves out, and in
        the first steps of a training, before there are rows to fit the dev head to. With
        ``--weights-every`` above one the signals of that many measured steps come together, as
        their mean, after the last of them.

        Signals are finite numbers. A step whose loss or gradient is not ends the run or, with
        ``--on-nan skip``, is left out and gives None, so no weighter need look.
        """
        ...

    def step_over(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """One optimiser step on the mean of several draws' losses.

        Each draw has coefficients of its own, as :meth:`step` takes them, rows of its own, its
        share of the step's, and is measured on its own; the signals are those of all together.
        """
        ...

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> Update:
        """Train the tasks named alone, from where the model stands, and restore the model.

        Every optimiser step takes a batch of each task and the loss Σ coefficient · loss. There
        are as many steps as it takes to see ``fraction`` of the rows of the largest task, and they
        count as steps of the run. The optimiser is a fresh one at the learning rate of the round,
        so that tasks are tried alike.

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
        """The dev loss at θ + Σ α_t δ_t, and its gradient by α.

        batches: over the next so many batches of dev rows; None for the whole dev set.
        """
        ...

    def dev_score(self, rows: int | None = None) -> float:
        """The dev metric of the model as it stands, over the dev set.

        Args:
            rows: as many dev rows as will do: a random part of the dev set, the same throughout
                the run, so that two scores differ by the model alone. None, or more than there
                are, for the whole dev set; a run that can only score all of it does so.
        """
        ...

    def snapshot(self) -> Callable[[], None]:
        """Remember body and heads as they stand; calling what is returned restores them.

        Nothing else is restored: the optimiser keeps its moments, steps stay counted, and tasks go
        on in their rows.
        """
        ...


class Weighter(Protocol):
    """Strategy that decides task weights and drives a round of training.

    Made by calling the registered target as ``target(end_task, auxiliaries, **options)`` with a
    :class:`TaskCard` for the end task and one for each auxiliary task.

    signals: what the weighter measures in its steps; empty means that it pays for nothing.
    uses_auxiliaries: False if the weighter trains the end task alone, so that no other need be
        built.

    A weighter may also have ``round_steps``, the optimiser steps of one of its rounds; a run that
    is shorter is refused before it begins.
    """

    signals: frozenset[Signal]
    uses_auxiliaries: bool

    def round(self, bench: Workbench) -> None:
        """One round of training: one step for most weighters, an epoch for some."""
        ...

    def weights(self) -> Mapping[str, float]:
        """Current weight of every task, the end task included; non-negative, summing to one."""
        ...

    def record(self) -> Mapping[str, Any]:
        """What besides the weights is worth a line in ``weights.jsonl``; JSON values by name."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on, as JSON values keyed by names."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` gave."""
        ...


def require_whole_round(weighter: Weighter, steps: int) -> None:
    """Refuse a weighter whose round is longer than the run.

    Args:
        weighter: one made already; only its ``round_steps`` are looked at.
        steps: optimiser steps of the run.

    Raises:
        ConfigError: no round would be whole.
    """
    needed = getattr(weighter, "round_steps", None)
    if needed is not None and needed > steps:
        raise ConfigError(
            f"the weighter learns from rounds of {needed} steps, and the run has {steps}: it would "
            f"learn nothing. Give the weighter fewer steps a round, or --steps {needed} or more"
        )


def require_several_draws(weighter: object, draws: int, option: str) -> None:
    """Refuse a weighter whose round cannot be made of several draws.

    Args:
        weighter: One made already, or its class; only ``several_draws`` is looked at.
        draws: How many draws a step is to be made of.
        option: How the user asked for them, for the message.

    Raises:
        ConfigError: It takes one draw a step.
    """
    if draws > 1 and not getattr(weighter, "several_draws", False):
        raise ConfigError(
            f"{option}: a round of this weighter is no step made of draws; leave the option out"
        )


class StepwiseWeighter(ABC):
    """A weighter whose round is one step: sample, step, observe.

    With ``--draws-per-step`` a step is made of several draws, each with a sample of its own and the
    weights of the moment.

    normalised: False declares that the coefficients of a step may sum to less than one.
    several_draws: whether a round keeps to ``--draws-per-step``.
    """

    signals: frozenset[Signal] = frozenset()
    uses_auxiliaries = True
    normalised = True
    several_draws = True
    sample_size: int | None = None

    def round(self, bench: Workbench) -> None:
        samples = [
            bench.sample(self.sample_size, self.sample_weights())
            for _ in range(bench.draws_per_step)
        ]
        measured = bench.step_over([self.coefficients(s) for s in samples], self.signals)
        if measured is not None:
            self.observe([name for name in measured.tasks if name != bench.end_task], measured)

    def sample_weights(self) -> Mapping[str, float] | None:
        """Every auxiliary task's weight in the draw of the step; None draws evenly."""
        return None

    @abstractmethod
    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        """Loss weights of the end task and the sampled tasks; non-negative, summing to one.

        A weighter that is not :attr:`normalised` may leave part of the loss out: its coefficients
        sum to one at most. Its :meth:`weights` sum to one all the same.
        """

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Learn from a step that measured something; not called if :attr:`signals` is empty."""
        raise PluginError(
            f"weighter {type(self).__name__} asks for {', '.join(sorted(self.signals))} and has "
            "no observe() that takes them; write one, or ask for nothing"
        )

    @abstractmethod
    def weights(self) -> Mapping[str, float]:
        """See :meth:`Weighter.weights`."""

    def record(self) -> Mapping[str, Any]:
        return {}

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """See :meth:`Weighter.state_dict`."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`Weighter.load_state_dict`."""
