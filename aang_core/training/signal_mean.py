"""Signals of several steps, from which the weights learn together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aang_core.tasks.weighting import StepSignals, mean_signals


class SignalMean:
    """Holds signals back until those of ``every`` measured steps can be handed on as their mean.

    AANG's released code measures in every step and moves the weights in every third, by the mean of
    the three (``step_meta_every``).
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._held: list[StepSignals] = []

    def add(self, measured: StepSignals | None) -> StepSignals | None:
        """Add the signals of a step; the mean if they were the last to wait for, else None."""
        if measured is None:
            return None
        self._held.append(measured)
        if len(self._held) < self._every:
            return None
        held, self._held = self._held, []
        return mean_signals(held)

    def state_dict(self) -> list[dict[str, Any]]:
        """What is held back, of what JSON can hold."""
        return [asdict(signals) for signals in self._held]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Hold back what was held back."""
        self._held = [StepSignals(**signals) for signals in state]
