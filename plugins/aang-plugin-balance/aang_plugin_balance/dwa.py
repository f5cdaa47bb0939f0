"""The weighter ``dwa``."""

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
    whole_number_option,
)

LARGEST = 4.0
"""Largest w_k."""


class DynamicWeightAverage(StepwiseWeighter):
    """Gives more weight to tasks whose losses fall slowly.

    Dynamic Weight Average (Liu, Johns and Davison, CVPR 2019), section 4.1.3, equation 7: λ_k(t) ∝
    exp(w_k(t − 1) / T), w_k(t − 1) = L_k(t − 1) / L_k(t − 2), where L_k(t) is the mean loss of
    epoch t and w_k = 1 in the first two. Here an epoch is ``every`` measured steps, because tasks
    have different numbers of rows. A task without a loss in one of the last two has w_k = 1. The
    λ_k sum to one instead of to the number of tasks. w_k is at most 4: a loss that rises again
    from next to nothing, because few rows had a target, would take all of the weight.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        temperature: T; 2 in the paper. The larger, the more even the weights.
        every: number of measured steps whose mean loss is compared with that of the steps before.
        n: number of auxiliary tasks of a step, drawn anew each time; None for all of them, as in
            the paper.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import StepSignals, TaskCard
        >>> from aang_plugin_balance.dwa import DynamicWeightAverage
        >>> weighter = DynamicWeightAverage(TaskCard("end"), [TaskCard("a")], every=1)
        >>> for losses in ({"end": 2.0, "a": 2.0}, {"end": 1.0, "a": 2.0}):
        ...     weighter.observe(["a"], StepSignals({}, {}, {}, {}, None, losses))
        >>> weighter.record()  # the end task's loss has halved
        {'rates': {'end': 0.5, 'a': 1.0}}
    """

    signals: frozenset[Signal] = frozenset({"loss"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        temperature: float = 2.0,
        every: int = 30,
        n: int | None = None,
    ) -> None:
        self._end_task = end_task.name
        self._rates = {card.name: 1.0 for card in (end_task, *auxiliaries)}
        self._every = whole_number_option("weighter option every", every)
        self._temperature = number_option("weighter option temperature", temperature, low=0.01)
        self.sample_size = sample_size_option(n, auxiliaries)
        self._steps = 0
        self._sums: dict[str, list[float]] = {}
        self._before: dict[str, float] = {}

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return self._softmax([self._end_task, *sampled])

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        """Collect losses, and compare their means after ``every`` steps."""
        for name, loss in signals.loss.items():
            total, count = self._sums.get(name, (0.0, 0.0))
            self._sums[name] = [total + loss, count + 1]
        self._steps += 1
        if self._steps < self._every:
            return
        means = {name: total / count for name, (total, count) in self._sums.items()}
        self._rates = {
            name: _ratio(means[name], self._before[name])
            if name in means and name in self._before
            else 1.0
            for name in self._rates
        }
        self._before, self._sums, self._steps = means, {}, 0

    def weights(self) -> Mapping[str, float]:
        return self._softmax(list(self._rates))

    def record(self) -> Mapping[str, Any]:
        return {"rates": dict(self._rates)}

    def state_dict(self) -> dict[str, Any]:
        return {
            "rates": dict(self._rates),
            "steps": self._steps,
            "sums": {name: [*pair] for name, pair in self._sums.items()},
            "before": dict(self._before),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`aang_core.Weighter.load_state_dict`.

        Raises:
            ConfigError: the state is from a run with other tasks.
        """
        self._rates = restored_by_task(state["rates"], self._rates)
        self._steps = state["steps"]
        self._sums = {name: [*pair] for name, pair in state["sums"].items()}
        self._before = dict(state["before"])

    def _softmax(self, names: Sequence[str]) -> dict[str, float]:
        return softmax({name: self._rates[name] / self._temperature for name in names})


def _ratio(now: float, before: float) -> float:
    """L(t − 1) / L(t − 2); 1 if it means nothing, because a loss is not above zero."""
    ratio = now / before if before > 0 and now > 0 else 1.0
    return min(ratio, LARGEST) if math.isfinite(ratio) else 1.0
