"""The importance of each task, which both weighters of this plug-in adjust round by round."""

from collections.abc import Iterable, Mapping

from aang_core import restored_by_task

SMALLEST = 1e-6
"""Weights are clamped to [1e-6, ∞) (αVIL, section 4.1)."""


class TaskWeights:
    """w_t of every task, all starting at one."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._weights = dict.fromkeys(tasks, 1.0)

    def shares(self, tasks: Iterable[str]) -> dict[str, float]:
        """w_t / Σ w over ``tasks``."""
        weights = {task: self._weights[task] for task in tasks}
        total = sum(weights.values())
        return {task: weight / total for task, weight in weights.items()}

    def all_shares(self) -> Mapping[str, float]:
        """w_t / Σ w over all tasks."""
        return self.shares(self._weights)

    def add(self, task: str, amount: float) -> None:
        """w_t ← max(w_t + amount, 1e-6)."""
        self._weights[task] = max(self._weights[task] + amount, SMALLEST)

    def state_dict(self) -> dict[str, float]:
        """The weights by task."""
        return dict(self._weights)

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore saved weights.

        Raises:
            ConfigError: they belong to a run with other tasks.
        """
        self._weights = restored_by_task(state, self._weights)
