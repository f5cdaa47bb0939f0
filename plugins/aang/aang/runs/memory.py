"""Memory: does the model fit, what to lower if a step runs out, and returning what is free."""

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from aang.assembly.assembly import Assembly
from aang_core.errors import ConfigError, OutOfMemoryError
from aang_core.tasks.processes import local_processes
from aang_core.tasks.workbench import AGAINST_DEV
from aang_core.training.step import in_a_line, is_out_of_memory

_ROOM = 0.9
"""The share of a device's memory that the advice uses; its driver and kernels take the rest."""

FLOAT = 4
"""Bytes of a number; weights, moments and gradients are float32 in every precision."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")

SHARE = 0.03
"""Largest part of the time of a training that returning memory may take."""


def device_memory(device: torch.device) -> int | None:
    """Bytes of memory that this process may use on a device; None if unknown.

    Processes on the same CPU share its memory. Each accelerator has one process.
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


def refuse_too_large(assembly: Assembly, device: torch.device) -> None:
    """Refuse a model whose weights, moments and gradients alone do not fit, as `check_memory`."""
    model = assembly.model
    modules = [model.body, model.classifier, *(task.head for task in assembly.auxiliaries)]
    parameters = {id(p): p for module in modules for p in module.parameters()}.values()
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    check_memory(
        trained,
        sum(p.numel() for p in parameters) - trained,
        4 + bool(assembly.weighter.signals & AGAINST_DEV) + bool(assembly.auxiliaries),
        device,
    )


def check_memory(trained: int, frozen: int, copies: int, device: torch.device) -> None:
    """Check that weights, moments and gradients fit.

    Args:
        trained: number of trained parameters, of body and heads.
        frozen: number of frozen parameters.
        copies: how many numbers are kept for each trained parameter: itself, two moments, the
            step's gradient, v if it is measured, and one task's gradient if there are objectives.
        device: the device that trains.

    Raises:
        ConfigError: they do not fit.
    """
    kept = FLOAT * (copies * trained + frozen)
    there = device_memory(device)
    if there is None or kept <= there:
        return
    all_frozen = FLOAT * (trained + frozen)
    fitting = max(0.0, (there * _ROOM - all_frozen) / (FLOAT * (copies - 1)))
    raise ConfigError(
        f"--model: weights, moments and gradients of {trained / 1e6:,.1f} M trained parameters "
        f"take {kept / 1e9:.2f} GB before any row, and {device} has {there / 1e9:.2f} GB; train at "
        f"most {fitting / 1e6:,.1f} M of them, with --lora or --freeze-layers, or take a smaller "
        "--model"
    )


def lowered(error: OutOfMemoryError, *, save_memory: bool) -> tuple[str, ...]:
    """The options with which a run that ran out of memory may continue.

    Args:
        error: what it ended with.
        save_memory: whether it already recomputes activations.
    """
    if error.rows is not None and error.rows // 2 >= error.least:
        return "--micro-batch-size", str(error.rows // 2)
    return () if error.rows is None or save_memory else ("--save-memory",)


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


class ReturnsFreeMemory:
    """An observer of a training on a CPU, which keeps its resident memory near what it uses.

    Batches differ in their numbers of rows and tokens, so the allocator of the GNU C library finds
    no freed block that fits, takes new memory and keeps the old: training grows for hundreds of
    steps. This observer makes it return whole free pages. The next step takes most of them again,
    which costs system time: on some machines next to nothing, on others a seventh of a step. So the
    more it costs, the less often it is done. Other C libraries are left alone.

    Args:
        share: largest part of the time that this may take.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._trim = _malloc_trim()
        self._share = share
        self._last = float("-inf")
        self._before: float | None = None  # System time before a return whose cost is not known.
        self._cost = 0.0

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Return free memory, unless the last return has not paid off yet."""
        if self._trim is None:
            return
        spent = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        if self._before is not None:
            self._cost = spent - self._before
            self._before = None
        if time.monotonic() - self._last >= self._cost / self._share:
            self._trim(0)
            self._last = time.monotonic()
            self._before = spent

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Return what the evaluation has used, on the same condition."""
        self.after_round(step, {})


def _malloc_trim() -> Callable[[int], int] | None:
    """The function of the GNU C library that returns free memory; None with other libraries."""
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
