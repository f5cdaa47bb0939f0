"""The tasks of a run by name, and checks of the coefficients that a weighter gives them."""

import math
from collections.abc import Mapping, Sequence

from torch import nn

from aang_core.errors import WeighterError
from aang_core.tasks.names import END_TASK
from aang_core.tasks.task import Task
from aang_core.tasks.weighting import problem_of_sum

DEV, DEV_HEAD = "dev", "dev-head"
"""Names of row orders, beside those of tasks: of the dev set, and of the dev head's own draws."""


class RunTasks:
    """The end task and the auxiliary tasks of a run.

    Args:
        body: the module that all tasks share.
        end_task: the end task.
        dev: the end task over the rows that the dev gradient is computed on.
        auxiliaries: the auxiliary tasks.
        normalised: whether the coefficients of a step must sum to one, or to one at most.
    """

    def __init__(
        self,
        body: nn.Module,
        end_task: Task,
        dev: Task,
        auxiliaries: Sequence[Task],
        *,
        normalised: bool = True,
    ) -> None:
        self._normalised = normalised
        self.end_task = end_task
        self.auxiliaries = {task.name: task for task in auxiliaries}
        self._dev = dev
        heads = {name: task.head for name, task in self.auxiliaries.items()}
        self.modules: Mapping[str, nn.Module] = {
            "body": body,
            end_task.name: end_task.head,
            **heads,
        }

    def orders(self, *, dev_head: bool) -> dict[str, Task]:
        """The task of every row order, by the order's name.

        Args:
            dev_head: whether the dev head draws rows of its own.
        """
        own = {DEV_HEAD: self.end_task} if dev_head else {}
        return {END_TASK: self.end_task, DEV: self._dev, **own} | {
            f"auxiliary:{name}": task for name, task in self.auxiliaries.items()
        }

    def of_step(self, coefficients: Mapping[str, float]) -> list[Task]:
        """The auxiliary tasks of a step with these coefficients.

        Raises:
            WeighterError: a coefficient is negative, not finite or for an unknown task, the end
                task's is missing, or they do not sum to one.
        """
        _check("a step", coefficients)
        names = [name for name in coefficients if name != self.end_task.name]
        unknown = [name for name in names if name not in self.auxiliaries]
        if unknown or self.end_task.name not in coefficients:
            raise WeighterError(
                f"a step needs a coefficient for {self.end_task.name!r} and knows no task "
                f"{', '.join(unknown) or '(none other)'}"
            )
        problem = problem_of_sum(coefficients.values(), normalised=self._normalised)
        if problem is not None:
            raise WeighterError(f"the sum of the coefficients of a step: {problem}")
        return [self.auxiliaries[name] for name in names]

    def of_gradients(self, names: Sequence[str]) -> list[Task]:
        """The auxiliary tasks among the tasks whose gradients are asked for.

        Raises:
            WeighterError: there are no names, or one is unknown or given twice.
        """
        known = {self.end_task.name, *self.auxiliaries}
        strange = [name for name in names if name not in known]
        if strange or not names or len(set(names)) < len(names):
            raise WeighterError(
                f"the gradients of {', '.join(map(repr, strange or names)) or 'no task'}: expected "
                "names of tasks of this run, each once"
            )
        return [self.auxiliaries[name] for name in names if name != self.end_task.name]

    def of_trial(self, coefficients: Mapping[str, float]) -> dict[str, Task]:
        """The tasks of a trial, by the names of their row orders.

        Raises:
            WeighterError: there are no coefficients, or one is negative, not finite or for an
                unknown task.
        """
        _check("a trial", coefficients)
        if not coefficients:
            raise WeighterError("a trial needs a task to train; it was given none")
        tasks: dict[str, Task] = {}
        for name in coefficients:
            if name == self.end_task.name:
                tasks[END_TASK] = self.end_task
            elif name in self.auxiliaries:
                tasks[f"auxiliary:{name}"] = self.auxiliaries[name]
            else:
                raise WeighterError(f"a trial of {name!r}, which is no task of this run")
        return tasks

    def train_mode(self) -> None:
        """Turn dropout on, in the body and in every head."""
        for module in self.modules.values():
            module.train()


def _check(what: str, coefficients: Mapping[str, float]) -> None:
    """Raise if a coefficient of ``what`` is negative or not finite."""
    for name, coefficient in coefficients.items():
        _expect_weight(f"the coefficient of {name} in {what}", coefficient)


def check_odds(odds: Mapping[str, float], names: Sequence[str], n: int | None) -> None:
    """Check the weights that auxiliary tasks are drawn with.

    Args:
        odds: weight of each task.
        names: the tasks to draw from.
        n: how many are drawn; None for all.

    Raises:
        WeighterError: the weights are for other tasks, one is negative or not finite, or fewer than
            ``n`` are above zero.
    """
    if set(odds) != set(names):
        odd = ", ".join(sorted(set(odds) ^ set(names)))
        raise WeighterError(f"the weights of a draw are not those of the auxiliary tasks: {odd}")
    for name, weight in odds.items():
        _expect_weight(f"the weight of {name} in a draw", weight)
    possible = sum(weight > 0 for weight in odds.values())
    if n is not None and possible < n < len(names):
        raise WeighterError(f"a draw of {n} tasks, of which fewer have a weight above zero")


def mean_coefficients(draws: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean coefficients of a step's draws; zero in a draw without the task."""
    if len(draws) == 1:
        return dict(draws[0])
    names = dict.fromkeys(name for draw in draws for name in draw)
    return {name: math.fsum(d.get(name, 0.0) for d in draws) / len(draws) for name in names}


def _expect_weight(what: str, value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise WeighterError(f"{what}: expected a finite number, not negative, got {value!r}")
