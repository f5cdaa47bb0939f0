"""The weighter ``pcgrad``."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Generator, randperm

from aang_core import TaskCard, Weighter, Workbench, sample_size_option

Matrix = Sequence[Sequence[float]]


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
        self._conflicts = None
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


def conflicts(dots: Matrix) -> float:
    """The share of pairs of gradients whose inner product is negative.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
    """
    n = len(dots)
    pairs = [dots[i][j] < 0 for i in range(n) for j in range(i)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def projected(dots: Matrix, i: int, order: Sequence[int]) -> list[float]:
    """Gradient i after its projections, as coefficients a_m with g_i^PC = Σ_m a_m g_m.

    For each j in turn, where ⟨g_i^PC, g_j⟩ < 0: g_i^PC ← g_i^PC − ⟨g_i^PC, g_j⟩ / ‖g_j‖² · g_j (Yu
    et al., section 2.3 and Algorithm 1). The inner products of the gradients suffice for this.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
        i: number of the gradient.
        order: the numbers of the others.

    Examples:
        >>> projected([[1.0, -1.0], [-1.0, 2.0]], 0, [1])
        [1.0, 0.5]
    """
    coefficients = [float(m == i) for m in range(len(dots))]
    for j in order:
        along = sum(a * dots[m][j] for m, a in enumerate(coefficients))
        if along < 0:
            coefficients[j] -= along / dots[j][j]
    return coefficients


def surgery(dots: Matrix, generator: Generator) -> list[float]:
    """The coefficients of (1/n) Σ_i g_i^PC, each projected in a random order of the others.

    Args:
        dots: ``[n][n]``, ⟨g_i, g_j⟩.
        generator: source of the orders.
    """
    n = len(dots)
    total = [0.0] * n
    for i in range(n):
        order = [j for j in randperm(n, generator=generator).tolist() if j != i]
        for m, coefficient in enumerate(projected(dots, i, order)):
            total[m] += coefficient / n
    return total
