"""The weighter ``uncertainty``."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    Signal,
    StepSignals,
    StepwiseWeighter,
    TaskCard,
    number_option,
    restored_by_task,
    sample_size_option,
    softmax,
)

LIMIT = 10.0
"""Largest |s_k|: variances, which start at 1, stay between e^-10 and e^10."""


class Uncertainty(StepwiseWeighter):
    """One learned variance per task; the more uncertain a task, the smaller its weight.

    Kendall, Gal and Cipolla (CVPR 2018), section 3.2: the losses of tasks with a softmax likelihood
    add up to Σ_k L_k / σ_k² + log σ_k (equation 10, for tasks that classify). As there, s_k = log
    σ_k² is learned: s_k ← s_k − η ∂/∂s_k (e^-s_k L_k + s_k / 2) = s_k + η (e^-s_k L_k − ½), which
    is at rest where σ_k² = 2 L_k. The coefficient of a task in a step is e^-s_k, divided by the sum
    over the tasks of the step: the paper leaves the sum free, and here the learning rate alone
    decides how long steps are.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        lr: η; the paper learns s_k with the optimiser of the network.
        n: number of auxiliary tasks of a step, drawn anew each time; None for all of them, as in
            the paper.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import StepSignals, TaskCard
        >>> from aang_plugin_balance.uncertainty import Uncertainty
        >>> weighter = Uncertainty(TaskCard("end"), [TaskCard("a")], lr=1.0)
        >>> weighter.observe(["a"], StepSignals({}, {}, {}, {}, None, {"end": 0.5, "a": 1.5}))
        >>> weighter.record()
        {'log_variances': {'end': 0.0, 'a': 1.0}}
    """

    signals: frozenset[Signal] = frozenset({"loss"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        lr: float = 0.025,
        n: int | None = None,
    ) -> None:
        self._end_task = end_task.name
        self._logs = {card.name: 0.0 for card in (end_task, *auxiliaries)}
        self._lr = number_option("weighter option lr", lr, low=0)
        self.sample_size = sample_size_option(n, auxiliaries)

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return self._inverse_variances([self._end_task, *sampled])

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Take one step of gradient descent on the s_k of the tasks in the step.

        A loss of zero, as of rows without targets, says nothing about a variance, and would in the
        end give its task all of the weight.
        """
        for name, loss in signals.loss.items():
            if loss <= 0:
                continue
            s = self._logs[name]
            moved = s + self._lr * (math.exp(-s) * loss - 0.5)
            self._logs[name] = min(max(moved, -LIMIT), LIMIT)

    def weights(self) -> Mapping[str, float]:
        return self._inverse_variances(self._logs)

    def record(self) -> Mapping[str, Any]:
        return {"log_variances": dict(self._logs)}

    def state_dict(self) -> dict[str, Any]:
        return {"log_variances": dict(self._logs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._logs = restored_by_task(state["log_variances"], self._logs)

    def _inverse_variances(self, names: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
        """e^-s_k, divided by their sum."""
        return softmax({name: -self._logs[name] for name in names})
