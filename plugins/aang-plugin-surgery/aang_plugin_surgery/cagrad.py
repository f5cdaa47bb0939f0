"""The weighter ``cagrad``."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from aang_core import TaskCard, Weighter, Workbench, number_option, sample_size_option
from aang_plugin_surgery.conflict_averse import direction


class CAGrad(Weighter):
    """Step near the mean gradient, where the task that gains least gains most.

    CAGrad (Liu et al., NeurIPS 2021), section 3.1 and Algorithm 1: d maximises min_i ⟨g_i, d⟩ over
    ‖d − g_0‖ ≤ c ‖g_0‖, with g_0 the mean of the gradients (equation 3). Its dual is a problem in
    as many numbers as there are tasks. c = 0 is the step of equal weights; the larger c, the more
    it resembles MGDA. The body moves along d; each head by its own task's gradient, divided by the
    number of tasks.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        c: radius around g_0, from 0 to below 1; the paper takes 0.4 and 0.2 (section 5.2).
        n: number of auxiliary tasks of a step, drawn anew each time; None for all of them, as in
            the paper. The gradients of all tasks of a step are in memory together.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_testing import RecordingWorkbench
        >>> from aang_plugin_surgery.cagrad import CAGrad
        >>> vectors = {"end": [1.0, 0.0], "a": [0.0, 1.0]}
        >>> bench = RecordingWorkbench("end", ["a"], gradient=vectors.__getitem__)
        >>> CAGrad(TaskCard("end"), [TaskCard("a")], c=0.5).round(bench)
        >>> {name: round(c, 6) for name, c in bench.descents[0].items()}  # d = (1 + c) g_0
        {'end': 0.75, 'a': 0.75}
    """

    def __init__(
        self,
        end_task: TaskCard,
        auxiliaries: Sequence[TaskCard],
        *,
        c: float = 0.4,
        n: int | None = None,
    ) -> None:
        self._names = [end_task.name, *(card.name for card in auxiliaries)]
        self._c = number_option(
            "weighter option c",
            c,
            "the radius around the mean gradient, a number from 0 to below 1",
            low=0,
            high=1,
            below_high=True,
        )
        self._sample_size = sample_size_option(n, auxiliaries)
        self._dual: dict[str, float] = {}

    def round(self, bench: Workbench) -> None:
        names = [bench.end_task, *bench.sample(self._sample_size)]
        gradients = bench.gradients(names)
        if gradients is None:
            return
        dots = torch.tensor(bench.dots(gradients), dtype=torch.float64)
        coefficients, w = direction(dots, self._c)
        self._dual = dict(zip(names, w.tolist(), strict=True))
        bench.descend(gradients, coefficients.tolist(), of_heads=[1 / len(names)] * len(names))

    def weights(self) -> Mapping[str, float]:
        """Equal: CAGrad changes the direction of a step and weighs no task."""
        return dict.fromkeys(self._names, 1 / len(self._names))

    def record(self) -> Mapping[str, Any]:
        return {"dual": dict(self._dual)}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore: nothing is learned."""
