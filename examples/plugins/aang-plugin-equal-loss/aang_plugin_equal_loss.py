"""The weighter equal-loss: every task contributes the same to the loss of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import (
    RegisterPrimitive,
    Signal,
    StepSignals,
    StepwiseWeighter,
    TaskCard,
    hookimpl,
    number_option,
    sample_size_option,
)

AANG_PLUGIN_API = 1


class EqualLoss(StepwiseWeighter):
    """A task's weight is in inverse proportion to the running mean of its loss.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the objectives.
        memory: what a new loss leaves of the running mean, from 0 to below 1.
        n: number of objectives that a step trains; None for all of them.
    """

    signals: frozenset[Signal] = frozenset({"loss"})

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        memory: float = 0.9,
        n: int | None = None,
    ) -> None:
        option, meaning = "weighter option memory", "a number from 0 to below 1"
        self._memory = number_option(option, memory, meaning, low=0, high=1, below_high=True)
        self._end_task = end_task.name
        self._names = [end_task.name, *(card.name for card in auxiliaries)]
        self._means: dict[str, float] = {}
        self.sample_size = sample_size_option(n, auxiliaries)

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        names = [self._end_task, *sampled]
        # A task without a loss so far weighs as if its loss were 1.
        inverse = {name: 1 / max(self._means.get(name, 1.0), 1e-6) for name in names}
        total = sum(inverse.values())
        return {name: value / total for name, value in inverse.items()}

    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        for name, loss in signals.loss.items():
            before = self._means.get(name, loss)
            self._means[name] = self._memory * before + (1 - self._memory) * loss

    def weights(self) -> Mapping[str, float]:
        return self.coefficients(self._names[1:])

    def state_dict(self) -> dict[str, Any]:
        return {"means": dict(self._means)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._means = dict(state["means"])


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register the weighter."""
    register("equal-loss", "every task contributes the same loss", EqualLoss)
