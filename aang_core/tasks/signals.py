"""What a weighter can have measured in a step: losses, and gradients against the dev gradient."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

END_TASK = "end-task"
"""The name of the end task, in weights, logs, checkpoints and reports."""

Signal = Literal["cosine", "dot", "norm", "loss"]
"""What a step can measure of a task: of its body gradient g and the dev gradient v, cos(g, v),
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
