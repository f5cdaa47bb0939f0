"""What memory a run needs by the cost model, and what to lower where there is less."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from aang.assembly.assembly import Assembly
from aang.config import TrainConfig
from aang.modeling.trained_part import layers_trained
from aang_core.errors import ConfigError, OutOfMemoryError
from aang_core.tasks.processes import local_processes
from aang_core.tasks.signals import AGAINST_DEV
from aang_core.training.step import in_a_line, is_out_of_memory

_ROOM = 0.9
"""The share of a device's memory that is counted on; its driver and kernels take the rest."""

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


def memory_cost(config: TrainConfig, assembly: Assembly) -> MemoryCost:
    """The memory that the main training of a run needs.

    Args:
        config: the run's options, with the precision that was chosen.
        assembly: its model, rows, tasks and weighter.
    """
    model = assembly.model
    modules = [model.body, model.classifier, *(task.head for task in assembly.auxiliaries)]
    parameters = {id(p): p for module in modules for p in module.parameters()}.values()
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    shape = model.body.base.config
    return MemoryCost(
        trained=trained,
        frozen=sum(p.numel() for p in parameters) - trained,
        copies=4 + bool(assembly.weighter.signals & AGAINST_DEV) + bool(assembly.auxiliaries),
        layers=layers_trained(model.body),
        hidden=int(shape.hidden_size),
        heads=int(getattr(shape, "num_attention_heads", 1)),
        tokens=config.max_length,
        half=config.precision in ("bf16", "fp16"),
        recomputed=config.save_memory,
    )


def check_memory(cost: MemoryCost, device: torch.device) -> None:
    """Refuse a model whose weights, moments and gradients alone do not fit.

    Raises:
        ConfigError: they do not.
    """
    there = device_memory(device)
    if there is None or cost.kept <= there:
        return
    raise ConfigError(
        f"--model: by the cost model, weights, moments and gradients of {_millions(cost.trained)} "
        f"trained parameters take {in_gigabytes(cost.kept)} before any row, and {device} has "
        f"{in_gigabytes(there)}; train at most {_millions(_fitting(cost, there))} of them, with "
        "--lora or --freeze-layers, or take a smaller --model"
    )


def _fitting(cost: MemoryCost, there: int) -> float:
    """How many parameters can be trained: each costs its copies, and each frozen one itself."""
    all_frozen = 4 * (cost.trained + cost.frozen)
    return max(0.0, (there * _ROOM - all_frozen) / (4 * (cost.copies - 1)))


def _millions(count: float) -> str:
    return f"{count / 1e6:,.1f} M"


@contextmanager
def lowering_told(cost: MemoryCost, device: torch.device) -> Iterator[None]:
    """Add to an error about memory what to lower and by how much, and with what to go on.

    Args:
        cost: what the training needs.
        device: the device that it computes on.

    Raises:
        OutOfMemoryError: memory has run out in the block.
    """
    try:
        with running_out_told():
            yield
    except OutOfMemoryError as error:
        there = device_memory(device)
        has = "" if there is None else f", of {in_gigabytes(there)} on {device}"
        kept = f"weights, moments and gradients take {in_gigabytes(cost.kept)}"
        if error.rows is None:
            raise OutOfMemoryError(f"{error}. By the cost model, {kept}{has}") from error
        sentence, options = _lower(cost, there, error.rows, error.least)
        raise OutOfMemoryError(
            f"{error}. By the cost model, {kept} and {_pass(cost, error.rows)}{has}; {sentence}",
            rows=error.rows,
            least=error.least,
            go_on_with=options,
        ) from error


def _lower(cost: MemoryCost, there: int | None, rows: int, least: int) -> tuple[str, Sequence[str]]:
    """What to lower, as the end of a sentence, and the options that resume the run with it."""
    half = rows // 2
    if half >= least:
        fitting = half if there is None else min(half, cost.rows_within(there * _ROOM))
        fewer = max(fitting, least)
        return f"with --micro-batch-size {fewer}, {_pass(cost, fewer)}", (
            "--micro-batch-size",
            str(fewer),
        )
    if not cost.recomputed:
        return f"with --save-memory, {_pass(cost.recomputing(), rows)}", ("--save-memory",)
    shorter = replace(cost, tokens=max(1, cost.tokens // 2))
    return f"in a new run with --max-length {shorter.tokens}, {_pass(shorter, rows)}", ()


def _pass(cost: MemoryCost, rows: int) -> str:
    of = f"{rows} rows" if rows > 1 else "one row"
    return f"a pass of {of} of {cost.tokens} tokens takes {in_gigabytes(rows * cost.row)}"


@contextmanager
def running_out_told() -> Iterator[None]:
    """Turn errors about memory into one that tells the user what to do.

    Raises:
        OutOfMemoryError: memory has run out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"not enough memory: {in_a_line(error)}. Give the run more, or take a smaller --model, "
            "--max-length or --batch-size"
        ) from error
