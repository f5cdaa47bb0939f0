"""The weighter ``pcgrad``."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang_core import TaskCard, Weighter, Workbench, sample_size_option
from aang_plugin_surgery.projection import conflicts, surgery


class PCGrad(Weighter):
    """Project each task's gradient onto the normal plane of every gradient it conflicts with.

    PCGrad (Yu et al., NeurIPS 2020), section 2.3 and Algorithm 1: for each task i, in a random
    order of the other tasks j, where ⟨g_i, g_j⟩ < 0, g_i ← g_i − ⟨g_i, g_j⟩ / ‖g_j‖² · g_j; the
    step is along their sum. The g_j that are projected on are the original ones, and all inner
    products are over the body. The sum is divided by the number of tasks, which makes it the step
    of equal weights where nothing conflicts. Each head moves with the coefficient that its task's
    gradient has in the sum, as in the authors' code.

    Args:
        end_task: the end task's card.
        auxiliaries: the cards of the other tasks.
        n: number of auxiliary tasks of a step, drawn anew each time; None for all of them, as in
            the paper. The gradients of all tasks of a step are in memory together.

    Raises:
        ConfigError: n is not a positive whole number.

    Examples:
        >>> from aang_core import TaskCard
        >>> from aang_testing import RecordingWorkbench
        >>> from aang_plugin_surgery.pcgrad import PCGrad
        >>> vectors = {"end": [1.0, 0.0], "a": [-1.0, 1.0]}
        >>> bench = RecordingWorkbench("end", ["a"], gradient=vectors.__getitem__)
        >>> PCGrad(TaskCard("end"), [TaskCard("a")]).round(bench)
        >>> bench.descents  # (g_end + ½ g_a) + (g_a + g_end), halved
        [{'end': 1.0, 'a': 0.75}]
    """

    def __init__(
        self, end_task: TaskCard, auxiliaries: Sequence[TaskCard], *, n: int | None = None
    ) -> None:
        self._names = [end_task.name, *(card.name for card in auxiliaries)]
        self._sample_size = sample_size_option(n, auxiliaries)
        self._conflicts: float | None = None

    def round(self, bench: Workbench) -> None:
        gradients = bench.gradients([bench.end_task, *bench.sample(self._sample_size)])
        if gradients is None:
            return
        dots = bench.dots(gradients)
        self._conflicts = conflicts(dots)
        bench.descend(gradients, surgery(dots, bench.generator))

    def weights(self) -> Mapping[str, float]:
        """Equal: PCGrad changes directions and weighs no task."""
        return dict.fromkeys(self._names, 1 / len(self._names))

    def record(self) -> Mapping[str, Any]:
        return {"conflicts": self._conflicts}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore: nothing is learned."""
