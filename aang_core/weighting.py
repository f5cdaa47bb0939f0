"""Weighters decide the weight of every task and drive the rounds of training.

The trainer knows no weighter by name. It calls :meth:`Weighter.round` until the budget of steps is
spent; the weighter acts through the few verbs of the :class:`Workbench`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aang_core.errors import PluginError

Signal = Literal["cosine", "dot", "norm"]
"""A statistic of a task's body gradient g against the dev gradient v: cos(g, v), ⟨g, v⟩, ‖g‖."""


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
    """

    cosine: Mapping[str, float]
    dot: Mapping[str, float]
    norm: Mapping[str, float]
    auxiliary: Mapping[Signal, float]
    dev_norm: float


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

    def sample(self, n: int | None) -> tuple[str, ...]:
        """n auxiliary tasks, uniformly without replacement; all of them for None."""
        ...

    def step(
        self, coefficients: Mapping[str, float], signals: frozenset[Signal]
    ) -> StepSignals | None:
        """One optimiser step on Σ coefficient · loss over the tasks named.

        Measures ``signals`` on the way. With no signals asked for there is no dev head and no dev
        gradient, and None is returned; so it is in steps that ``--meta-every`` leaves out.
        """
        ...

    def trial(
        self, coefficients: Mapping[str, float], *, fraction: float = 1.0, offload: bool = False
    ) -> Update:
        """Train the tasks named alone, from where the model stands, and put the model back.

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

    def dev_loss(self, updates: Sequence[Update], coefficients: Sequence[float]) -> DevLossAlong:
        """The dev loss, over the next dev rows, at θ + Σ α_t δ_t, and its gradient by α."""
        ...

    def dev_score(self) -> float:
        """The dev metric of the model as it stands, over the whole dev set."""
        ...

    def snapshot(self) -> Callable[[], None]:
        """Remember body and heads as they stand; calling what is returned puts them back."""
        ...


class Weighter(Protocol):
    """Strategy that decides task weights and drives a round of training.

    Made by calling the registered target as ``target(end_task, auxiliaries, **options)`` with a
    :class:`TaskCard` for the end task and one for each auxiliary task.

    signals: what the weighter measures in its steps; empty means that it pays for nothing.
    uses_auxiliaries: False if the weighter trains the end task alone, so that no other need be
        built.
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
        """Take up where ``state`` left off."""
        ...


class StepwiseWeighter(ABC):
    """A weighter whose round is one step: sample, step, observe."""

    signals: frozenset[Signal] = frozenset()
    uses_auxiliaries = True
    sample_size: int | None = None

    def round(self, bench: Workbench) -> None:
        sampled = bench.sample(self.sample_size)
        coefficients = self.coefficients(sampled)
        measured = bench.step(coefficients, self.signals)
        if measured is not None:
            self.observe(sampled, measured)

    @abstractmethod
    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        """Loss weights of the end task and the sampled tasks; non-negative, summing to one."""

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
