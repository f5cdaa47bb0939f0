"""The mean of several steps' signals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from aang_core.tasks.saved import saved_number, saved_numbers, wrong
from aang_core.tasks.signals import StepSignals, mean_signals


class SignalMean:
    """Collects signals and returns their mean every ``every`` measured steps.

    AANG's released code measures at every step and updates the weights every third step, with the
    mean of the three (``step_meta_every``).

    Args:
        every: number of measured steps to average over.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._held: list[StepSignals] = []

    def add(self, measured: StepSignals | None) -> StepSignals | None:
        """Add a step's signals and return the mean once there are enough, else None."""
        if measured is None:
            return None
        self._held.append(measured)
        if len(self._held) < self._every:
            return None
        held, self._held = self._held, []
        return mean_signals(held)

    def state_dict(self) -> list[dict[str, Any]]:
        """The signals collected so far, as values that JSON can hold."""
        return [asdict(signals) for signals in self._held]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore saved signals.

        Raises:
            SavedStateError: they are no signals.
        """
        if not isinstance(state, list):
            raise wrong("held_signals", "a list", state)
        self._held = [_restored(signals) for signals in state]


def _restored(saved: Mapping[str, Any]) -> StepSignals:
    names = {field.name for field in fields(StepSignals)}
    if not isinstance(saved, Mapping) or not names - {"loss"} <= saved.keys() <= names:
        raise wrong("held_signals", "the signals of steps", saved)
    without_dev = saved["dev_norm"] is None
    numbers: dict[str, Any] = {n: saved_numbers(saved, n) for n in saved if n != "dev_norm"}
    numbers["dev_norm"] = None if without_dev else saved_number(saved, "dev_norm")
    return StepSignals(**numbers)
