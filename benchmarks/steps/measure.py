"""What one step costs: arithmetic, processor time, wall time and memory."""

import gc
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from aang_core.gradients.passes import Precision
from benchmarks.steps import others, ours
from benchmarks.steps.ours import Way
from benchmarks.steps.setting import Setting, StepInputs, make_step

WAYS: Mapping[str, Callable[[StepInputs, Precision], Way]] = {
    "plain": ours.plain,
    "floor": ours.floor,
    "static": ours.static,
    "stream": ours.stream,
    "packed": ours.packed,
    "compiled": ours.compiled,
    "published": others.published,
    "torchjd": others.torchjd,
}


@dataclass(frozen=True)
class Times:
    """Seconds of one step."""

    cpu: float
    wall: float


def count_flops(setting: Setting, name: str) -> int:
    """Floating-point operations of a step's matrix products, convolutions and attention."""
    step = make_step(setting)
    way = WAYS[name](step, "fp32")
    with FlopCounterMode(display=False) as counter:
        way()
    return int(counter.get_total_flops())


def time_interleaved(
    setting: Setting, names: list[str], repeats: int, precision: Precision
) -> dict[str, list[Times]]:
    """Times of every way, measured in turn, so that a busy moment affects all alike."""
    step = make_step(setting)
    ways = {name: WAYS[name](step, precision) for name in names}
    times: dict[str, list[Times]] = {name: [] for name in names}
    for i in range(repeats + 1):
        for name, way in ways.items():
            clear_gradients(step)
            cpu, wall = time.process_time(), time.perf_counter()
            way()
            taken = Times(time.process_time() - cpu, time.perf_counter() - wall)
            if i > 0:  # the first round warms up
                times[name].append(taken)
    return times


def peak_memory(setting: Setting, name: str) -> int:
    """Bytes of tensors at the worst moment of a step, beyond those of the model and the rows.

    Counted by torch's allocator, allocation by allocation: unlike a process's resident set, that
    does not depend on what the C library keeps for later. The step's gradients are included, since
    they are made in it; an optimiser's state is not.
    """
    step = make_step(setting)
    way = WAYS[name](step, "fp32")
    way()
    clear_gradients(step)
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        way()
    events = profiler.profiler.kineto_results.events()
    changes: list[tuple[int, int]] = sorted(
        (e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"
    )
    return max(itertools.accumulate(change for _, change in changes))


def clear_gradients(step: StepInputs) -> None:
    """Drop what the previous step has left."""
    modules = [step.model.body, *(s.task.head for s in (*step.auxiliaries, step.end))]
    for module in modules:
        module.zero_grad(set_to_none=True)


def versions() -> dict[str, str]:
    """What the numbers depend on besides the machine."""
    return {"python": sys.version.split()[0], "torch": torch.__version__}
