"""Mean training losses of the tasks, from the numbers that every step moves to the host anyway."""

from collections.abc import Mapping
from typing import Any

from aang_core.tasks.saved import saved_count, saved_numbers, saved_part, wrong


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

    def take(self) -> dict[str, float]:
        """The means; the steps are then forgotten."""
        means = self.means()
        self._sums, self._steps = {}, {}
        return means

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
