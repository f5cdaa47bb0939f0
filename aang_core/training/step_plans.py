"""Which plans a step has: for each of its draws, and for the step after it."""

from collections.abc import Mapping, Sequence

from aang_core.gradients import DevHead
from aang_core.tasks.signals import AGAINST_DEV, Signal
from aang_core.tasks.weighting import Foreseeable, Weighter
from aang_core.tasks.workbench import Workbench
from aang_core.training.run_tasks import RunTasks
from aang_core.training.step_rows import RowBudget, StepPlan


class StepPlans:
    """Makes the plans of steps.

    Args:
        tasks: the tasks of the training.
        dev_head: the head that the dev gradient goes through.
        budget: number of rows of a step.
        meta_every: a step measures signals if the number of steps before it is a multiple of
            ``meta_every`` and, for signals against the dev gradient, the dev head is ready.

    Attributes:
        budget: number of rows of a step.
        remembers: whether the dev head also remembers rows of steps that ask for no signals.
    """

    def __init__(
        self, tasks: RunTasks, dev_head: DevHead, budget: RowBudget, meta_every: int
    ) -> None:
        self.budget = budget
        self.remembers = False
        self._tasks = tasks
        self._dev_head = dev_head
        self._meta_every = meta_every
        self._expected: Foreseeable | None = None

    def of_step(
        self, draws: Sequence[Mapping[str, float]], signals: frozenset[Signal], steps: int
    ) -> list[StepPlan]:
        """The plans of a step's draws; they measure if it is time to.

        Args:
            draws: coefficients of the losses, by task, for each draw.
            signals: what the weighter asks for.
            steps: number of steps before it.
        """
        against_dev = bool(signals & AGAINST_DEV)
        due = steps % self._meta_every == 0 and (self._dev_head.ready or not against_dev)
        return [
            StepPlan(
                self._tasks.end_task,
                self._tasks.of_step(coefficients),
                coefficients,
                self.budget.of_draw(len(draws), number),
                measures=signals if due else frozenset(),
                remember=(against_dev or self.remembers) and self._dev_head.remembers,
            )
            for number, coefficients in enumerate(draws)
        ]

    def of_gradients(self, names: Sequence[str]) -> StepPlan:
        """The plan of a step that computes the gradient of each of the tasks ``names``."""
        return StepPlan(
            self._tasks.end_task,
            self._tasks.of_gradients(names),
            dict.fromkeys([self._tasks.end_task.name, *names], 1.0),
            self.budget,
            measures=frozenset(),
            remember=self.remembers and self._dev_head.remembers,
        )

    def expect(self, weighter: Weighter) -> None:
        """From now on, `following` returns what ``weighter`` foresees."""
        self._expected = None
        if isinstance(weighter, Foreseeable) and weighter.foreseeable:
            self._expected = weighter

    def following(self, bench: Workbench, steps: int) -> Sequence[StepPlan]:
        """The plans of the next step, as far as the weighter can foresee them.

        Args:
            bench: where the weighter samples tasks.
            steps: number of steps before the next one.
        """
        if self._expected is None or bench.steps_left <= 1:
            return ()
        return self.of_step(self._expected.draws(bench), self._expected.signals, steps)
