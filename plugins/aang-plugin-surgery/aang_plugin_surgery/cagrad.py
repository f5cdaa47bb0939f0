"""The weighter ``cagrad``."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from aang_core import TaskCard, Weighter, Workbench, number_option, sample_size_option

MOST_STEPS = 1000
"""The most steps of projected gradient descent; a few dozen suffice for a few tasks."""


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
        self._c = number_option("weighter option c", c, low=0, high=1, below_high=True)
        self._sample_size = sample_size_option(n, auxiliaries)
        self._dual: dict[str, float] = {}

    def round(self, bench: Workbench) -> None:
        self._dual = {}
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


def direction(dots: Tensor, c: float) -> tuple[Tensor, Tensor]:
    """The coefficients of d = g_0 + (c ‖g_0‖ / ‖g_w‖) g_w, and w.

    g_0 = (1/n) Σ g_i and g_w = Σ w_i g_i. w minimises ⟨g_w, g_0⟩ + c ‖g_0‖ ‖g_w‖ over the simplex,
    which is the dual of max_d min_i ⟨g_i, d⟩ over ‖d − g_0‖ ≤ c ‖g_0‖ (Liu et al., section 3.1,
    equation 3; Algorithm 1).

    Args:
        dots: float64 ``[n, n]``, ⟨g_i, g_j⟩.
        c: radius of the ball around g_0, in lengths of g_0.

    Returns:
        The coefficients ``[n]`` of d, and w ``[n]``.
    """
    n = len(dots)
    mean = torch.full((n,), 1 / n, dtype=torch.float64)
    scale = dots.diagonal().max()
    if c == 0 or scale <= 0:
        return mean, mean
    # The solution does not depend on the gradients' scale.
    unit = dots / scale
    length = float((mean @ unit @ mean).clamp(min=0).sqrt())
    w = _minimise(unit, unit @ mean, c * length, mean)
    norm = float((w @ unit @ w).clamp(min=0).sqrt())
    # Where g_w vanishes, no direction helps every task, and g_0 is as good as any.
    return (mean + c * length / norm * w if norm > 1e-12 else mean), w


def _minimise(unit: Tensor, linear: Tensor, radius: float, start: Tensor) -> Tensor:
    """argmin_w ⟨w, linear⟩ + radius √(wᵀ unit w) over the simplex, by projected gradients."""

    def value(w: Tensor) -> float:
        return float(w @ linear + radius * (w @ unit @ w).clamp(min=0).sqrt())

    w, now, step = start, value(start), 1.0
    for _ in range(MOST_STEPS):
        gradient = linear + radius * (unit @ w) / _length(unit, w)
        step *= 2
        while True:
            moved = onto_simplex(w - step * gradient)
            then = value(moved)
            if then <= now - 0.5 / step * float((moved - w).square().sum()) or step < 1e-12:
                break
            step /= 2
        if then >= now - 1e-13:
            break
        w, now = moved, then
    polished = _polished(unit, linear, radius, w)
    return polished if value(polished) <= now + 1e-12 else w


def _polished(unit: Tensor, linear: Tensor, radius: float, w: Tensor) -> Tensor:
    """A few Newton steps on the weights that are not zero.

    The function's values determine w to eight digits only, because it is flat at its minimum. With
    more digits, processes that differ in the last digit of a gradient stay together.
    """
    support = w > 1e-6
    m, a, x = unit[support][:, support], linear[support], w[support]
    n = len(x)
    for _ in range(4):
        length, pull = _length(m, x), m @ x
        system = torch.ones(n + 1, n + 1, dtype=x.dtype)
        system[:n, :n] = radius * (m / length - torch.outer(pull, pull) / length**3)
        system[n, n] = 0.0
        rest = torch.cat([-(a + radius * pull / length), (1 - x.sum()).reshape(1)])
        x = x + (torch.linalg.pinv(system) @ rest)[:n]
    if not bool((x >= 0).all()):
        return w
    polished = torch.zeros_like(w)
    polished[support] = x
    return polished


def _length(unit: Tensor, w: Tensor) -> Tensor:
    """‖g_w‖, kept away from zero, where it has no derivative."""
    return (w @ unit @ w).clamp(min=1e-24).sqrt()


def onto_simplex(w: Tensor) -> Tensor:
    """The nearest point with w_i ≥ 0 and Σ w_i = 1 (Duchi et al., 2008, figure 1).

    Examples:
        >>> import torch
        >>> onto_simplex(torch.tensor([0.9, 0.5, -3.0]))
        tensor([0.7000, 0.3000, 0.0000])
    """
    ordered = w.sort(descending=True).values
    excess = (ordered.cumsum(0) - 1) / torch.arange(1, len(w) + 1, dtype=w.dtype)
    kept = int((ordered > excess).sum())
    return (w - excess[kept - 1]).clamp(min=0)
