"""A model of the memory that a training takes: what it keeps, and what each row adds."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from aang_core.tasks.processes import local_processes

FLOAT = 4
"""Bytes of a number; weights, moments and gradients are float32 in every precision."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class MemoryCost:
    """What a training needs, in bytes.

    Examples:
        MiniLM, all of which is trained, with gradient signals, on rows of 128 tokens:

        >>> cost = MemoryCost(22_700_000, 0, 6, layers=6, hidden=384, heads=12, tokens=128)
        >>> f"{cost.kept / 1e9:.2f} GB, {cost.row / 1e6:.0f} MB a row"
        '0.54 GB, 37 MB a row'
        >>> cost.rows_within(2e9)
        39

    Attributes:
        trained: number of trained parameters, of body and heads.
        frozen: number of the others.
        copies: how many numbers are kept for each trained parameter: itself, two moments, the
            step's gradient and, with signals, v and the gradient of one task.
        layers: layers that record something for the backward pass.
        hidden: width of the encoder.
        heads: attention heads of a layer.
        tokens: tokens of the longest row.
        half: whether forward passes run in half precision.
        recomputed: whether the activations of a layer are recomputed (``--save-memory``).
    """

    trained: int
    frozen: int
    copies: int
    layers: int
    hidden: int
    heads: int
    tokens: int
    half: bool = False
    recomputed: bool = False

    @property
    def kept(self) -> int:
        """Bytes that are kept however few rows a pass has."""
        return FLOAT * (self.copies * self.trained + self.frozen)

    @property
    def row(self) -> float:
        """Bytes that a row of ``tokens`` adds to a pass: what its layers record.

        A layer records some twenty vectors of its width for a token, and three numbers for each
        other token and head. Attention with a fused kernel leaves out the latter.
        """
        numbers = (48, 8) if self.half else (78, 12)
        of_layer = self.tokens * (numbers[0] * self.hidden + numbers[1] * self.tokens * self.heads)
        if self.recomputed:
            return self.layers * self.tokens * FLOAT * self.hidden + of_layer
        return self.layers * of_layer

    def rows_within(self, available: float) -> int:
        """The largest number of rows in a pass for which ``available`` bytes are enough."""
        return max(0, int((available - self.kept) // self.row))

    def recomputing(self) -> "MemoryCost":
        """The same training with ``--save-memory``."""
        return replace(self, recomputed=True)


def device_memory(device: torch.device) -> int | None:
    """Bytes of memory that this process may use on a device; None if nobody knows.

    Processes on the same CPU share its memory. Accelerators have a process each.
    """
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory())
    if device.type != "cpu":
        return None
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # Windows
        return None
    return min(size, _limit_of_container(size)) // local_processes()


def _limit_of_container(otherwise: int) -> int:
    try:
        limit = _CGROUP.read_text(encoding="ascii").strip()
    except OSError:
        return otherwise
    return int(limit) if limit.isdecimal() else otherwise


def in_gigabytes(size: float) -> str:
    """A size for people, such as ``2.10 GB``."""
    return f"{size / 1e9:.2f} GB"
