"""The weighter ``single-task``."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core.tasks.signals import Signal
from aang_core.tasks.weighting import TaskCard
from aang_core.tasks.workbench import Workbench


class SingleTask:
    """Trains the end task alone: the fine-tuning that every other weighter is compared with."""

    signals: frozenset[Signal] = frozenset()
    uses_auxiliaries = False
    several_draws = True
    foreseeable = True

    def __init__(self, end_task: TaskCard, auxiliaries: Sequence[TaskCard]) -> None:
        self._end_task = end_task.name
        self._names = [end_task.name, *(card.name for card in auxiliaries)]

    def round(self, bench: Workbench) -> None:
        bench.step_over(self.draws(bench), self.signals)

    def draws(self, bench: Workbench) -> list[Mapping[str, float]]:
        """The end task alone in every draw of a step."""
        return [{self._end_task: 1.0}] * bench.draws_per_step

    def weights(self) -> Mapping[str, float]:
        return {name: float(name == self._end_task) for name in self._names}

    def record(self) -> Mapping[str, Any]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Does nothing: nothing is learned."""
