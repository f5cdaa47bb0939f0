"""Gradient statistics, as measured on the device and as a weighter reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.tasks.moving import to_device
from aang_core.tasks.signals import AGAINST_DEV, Signal, StepSignals


@dataclass(frozen=True)
class GradientStatistics:
    """What an engine measured in one step, still on the device.

    Attributes:
        tasks: names of the K measured tasks, including the end task.
        dots: ``[K]``, ⟨g_k, v⟩ over the body; zeros in a step without v.
        squares: ``[K]``, ‖g_k‖² over the body.
        auxiliary_dot: scalar, ⟨Σ_k w_k g_k, v⟩ over the auxiliary tasks, with weights normalised
            to one.
        auxiliary_norm: scalar, ‖Σ_k w_k g_k‖ over the auxiliary tasks.
        dev_norm: scalar, ‖v‖; zero in a step without v.
    """

    tasks: Sequence[str]
    dots: Tensor
    squares: Tensor
    auxiliary_dot: Tensor
    auxiliary_norm: Tensor
    dev_norm: Tensor

    def read(self, signals: frozenset[Signal]) -> StepSignals:
        """Transfer the statistics from the device, once, and select the ``signals``."""
        return self.selected(self.values().tolist(), signals)

    def values(self) -> Tensor:
        """All statistics as one float64 tensor ``[2 K + 3]``, still on the device."""
        scalars = torch.stack([self.auxiliary_dot, self.auxiliary_norm, self.dev_norm])
        return torch.cat([self.dots, self.squares.sqrt(), scalars]).double()

    def selected(self, values: Sequence[float], signals: frozenset[Signal]) -> StepSignals:
        """Select signals.

        Args:
            values: the numbers of `values`, on the host.
            signals: the signals to select.
        """
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
            dev_norm=dev_norm if signals & AGAINST_DEV else None,
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
    """Statistics of K tasks from what an engine measured.

    Args:
        tasks: names of the tasks; the end task is last.
        coefficients: of the K − 1 auxiliary tasks.
        dots: ``[K]``, ⟨g_k, v⟩ of unclipped gradients.
        squares: ``[K]``, ‖g_k‖² of unclipped gradients.
        auxiliary_square: scalar, squared norm of Σ_k coefficient_k g_k, each g_k clipped by
            ``clip``.
        dev_square: scalar, ‖v‖².
        clip: how task gradients were clipped.
    """
    # Without v there are no dots to take the dtype from.
    weights = to_device(torch.tensor(coefficients, dtype=squares.dtype), squares.device)
    share = weights.sum().clamp(min=torch.finfo(squares.dtype).tiny)
    return GradientStatistics(
        tasks=tasks,
        dots=dots,
        squares=squares,
        auxiliary_dot=(weights * clip.factor(squares[:-1]) * dots[:-1]).sum() / share,
        auxiliary_norm=auxiliary_square.sqrt() / share,
        dev_norm=dev_square.sqrt(),
    )


def _cosine(dot: float, norm: float, dev_norm: float) -> float:
    """The cosine; zero instead of NaN for a zero gradient, which has no direction."""
    length = norm * dev_norm
    return 0.0 if length == 0.0 else dot / length
