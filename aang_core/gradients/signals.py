"""Gradient statistics as they are measured on the device, and as a weighter reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.tasks.weighting import Signal, StepSignals


@dataclass(frozen=True)
class GradientStatistics:
    """What an engine measured in one step, still on the device.

    tasks: names of the measured tasks, K of them, the end task among them.
    dots: ``[K]``, ⟨g_k, v⟩ over the body.
    squares: ``[K]``, ‖g_k‖² over the body.
    auxiliary_dot, auxiliary_norm: the same for Σ_k w_k g_k over the auxiliary tasks, weights
        normalised to one.
    dev_norm: ‖v‖.
    """

    tasks: Sequence[str]
    dots: Tensor
    squares: Tensor
    auxiliary_dot: Tensor
    auxiliary_norm: Tensor
    dev_norm: Tensor

    def read(self, signals: frozenset[Signal]) -> StepSignals:
        """The signals asked for, as numbers, in one transfer from the device."""
        return self.selected(self.values().tolist(), signals)

    def values(self) -> Tensor:
        """All of it as one tensor ``[2 K + 3]`` in double precision, still on the device."""
        scalars = torch.stack([self.auxiliary_dot, self.auxiliary_norm, self.dev_norm])
        return torch.cat([self.dots, self.squares.sqrt(), scalars]).double()

    def selected(self, values: Sequence[float], signals: frozenset[Signal]) -> StepSignals:
        """The signals asked for, from what :meth:`values` has become on the host."""
        k = len(self.tasks)
        dot = dict(zip(self.tasks, values[:k], strict=True))
        norm = dict(zip(self.tasks, values[k : 2 * k], strict=True))
        auxiliary_dot, auxiliary_norm, dev_norm = values[2 * k :]
        auxiliary: dict[Signal, float] = {
            "cosine": _cosine(auxiliary_dot, auxiliary_norm, dev_norm),
            "dot": auxiliary_dot,
            "norm": auxiliary_norm,
        }
        return StepSignals(
            cosine={t: _cosine(dot[t], norm[t], dev_norm) for t in self.tasks}
            if "cosine" in signals
            else {},
            dot=dot if "dot" in signals else {},
            norm=norm if "norm" in signals else {},
            auxiliary={name: value for name, value in auxiliary.items() if name in signals},
            dev_norm=dev_norm,
        )


def assemble_statistics(
    tasks: Sequence[str],
    coefficients: Sequence[float],
    *,
    dots: Tensor,
    squares: Tensor,
    auxiliary_square: Tensor,
    dev_square: Tensor,
    clip: TaskClip = UNCLIPPED,
) -> GradientStatistics:
    """Statistics of K tasks, the last of which is the end task, from what an engine measured.

    coefficients: of the K − 1 auxiliary tasks; with them Σ_k w_k g_k has been weighted.
    dots, squares: ``[K]``, of gradients as they are.
    auxiliary_square: squared norm of Σ_k coefficient_k g_k, each g_k clipped by ``clip``.
    """
    weights = torch.tensor(coefficients, dtype=dots.dtype).to(dots.device)
    share = weights.sum().clamp(min=torch.finfo(dots.dtype).tiny)
    return GradientStatistics(
        tasks=tasks,
        dots=dots,
        squares=squares,
        auxiliary_dot=(weights * clip.factor(squares[:-1]) * dots[:-1]).sum() / share,
        auxiliary_norm=auxiliary_square.sqrt() / share,
        dev_norm=dev_square.sqrt(),
    )


def _cosine(dot: float, norm: float, dev_norm: float) -> float:
    """A zero gradient has no direction; its cosine counts as zero rather than as NaN."""
    length = norm * dev_norm
    return 0.0 if length == 0.0 else dot / length
