"""Means over several steps: of losses for the logs, of signals for the weighter."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from aang_core.tasks.saved import saved_count, saved_number, saved_numbers, saved_part, wrong
from aang_core.tasks.signals import StepSignals, mean_signals


class LossMeans:
    """The mean of each task's training loss over the steps that included the task.

    A step's loss of a task is the mean over the targets of its rows, before the update and without
    the task's coefficient. Steps that were skipped do not count.

    Examples:
        >>> losses = LossMeans()
        >>> losses.add({"end-task": 0.5, "a": 3.0})
        >>> losses.add({"end-task": 0.25})
        >>> losses.means()
        {'end-task': 0.375, 'a': 3.0}
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def add(self, losses: Mapping[str, float]) -> None:
        """Include the losses of one step, by task."""
        for name, loss in losses.items():
            self._sums[name] = self._sums.get(name, 0.0) + loss
            self._steps[name] = self._steps.get(name, 0) + 1

    def include(self, other: "LossMeans") -> None:
        """Include all steps of ``other``."""
        for name, total in other._sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + total
            self._steps[name] = self._steps.get(name, 0) + other._steps[name]

    def means(self) -> dict[str, float]:
        """The mean loss of each task that any step included."""
        return {name: total / self._steps[name] for name, total in self._sums.items()}

    def state_dict(self) -> dict[str, Any]:
        """The sums and the numbers of steps, as values that JSON can hold."""
        return {"sums": dict(self._sums), "steps": dict(self._steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state.

        Raises:
            SavedStateError: it is not such a state.
        """
        sums, counts = saved_numbers(state, "sums"), saved_part(state, "steps")
        if sums.keys() != counts.keys():
            raise wrong("steps", "a number for each of the sums", dict(counts))
        self._steps = {name: saved_count(counts, name, least=1) for name in counts}
        self._sums = sums


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
    numbers: dict[str, Any] = {n: saved_numbers(saved, n) for n in saved if n != "dev_norm"}
    dev_norm = None if saved["dev_norm"] is None else saved_number(saved, "dev_norm")
    return StepSignals(**numbers, dev_norm=dev_norm)
