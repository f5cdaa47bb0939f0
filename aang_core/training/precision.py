"""Which precision a training computes in, where its user leaves that open."""

import time
from typing import Literal

import torch
from torch import nn

from aang_core.gradients.passes import Precision
from aang_core.tasks.processes import ALONE, Processes

PrecisionChoice = Literal["auto", "fp32", "bf16", "fp16"]
"""What ``--precision`` takes."""

WORTH_IT = 1.3
"""How many times as fast as fp32 bf16 must be on a CPU to be taken; it has three digits only."""
_NARROW = 128
"""Below this width an encoder's products are so small that converting numbers costs what is won."""
_ROWS = 512
_SECONDS = 0.1
_LEAST = 3


def in_effect(choice: PrecisionChoice) -> Precision:
    """The precision of a training that nobody has settled one for: fp32, the same everywhere."""
    return "fp32" if choice == "auto" else choice


def settle_precision(
    choice: PrecisionChoice, device: torch.device, width: int, processes: Processes = ALONE
) -> tuple[Precision, str | None]:
    """What to compute in, and a sentence that says why, if there is anything to say.

    On a CPU ``auto`` depends on a measurement, so it is settled once, before training begins, and
    what it has come to is recorded: a run that is resumed measures nothing. Several processes take
    what the first one finds.

    width: hidden size of the encoder, at which is measured.
    """
    if choice == "auto":
        bf16, reason = _automatic(device, width)
        (agreed,) = processes.agree([float(bf16)])
        precision: Precision = "bf16" if agreed else "fp32"
        return precision, f"--precision auto is {precision}: {reason}"
    if choice == "bf16" and device.type == "cpu":
        speed = bf16_speed(width)
        if speed < 1:
            return choice, (
                f"--precision bf16 makes training slower here: at {speed:.2f} times the speed of "
                "fp32 on this CPU, which has no instructions for it"
            )
    return choice, None


def _automatic(device: torch.device, width: int) -> tuple[bool, str]:
    """Whether to take bf16, and why."""
    if device.type == "cuda":
        supported = torch.cuda.is_bf16_supported(including_emulation=False)
        return supported, f"the GPU computes in it{'' if supported else ', and not in bf16'}"
    if device.type != "cpu":
        return False, f"bf16 is not tried on {device.type}"
    if width < _NARROW:
        return False, f"an encoder that is {width} wide gains nothing by bf16"
    speed = bf16_speed(width)
    return speed >= WORTH_IT, f"on this CPU bf16 has {speed:.1f} times the speed of fp32"


def bf16_speed(width: int) -> float:
    """How many times as fast as in fp32 a layer of that width is in bf16 on one core of this CPU.

    Flags of a processor promise instructions and no speed, so it is measured, in about a tenth of a
    second: forward and backward passes, conversions included, in turn, the fastest of each. On one
    core, and in time that this thread was given, because other programs may want the cores too.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        layer, inputs = nn.Linear(width, width), torch.randn(_ROWS, width)
    times: dict[bool, list[float]] = {False: [], True: []}
    torch.set_num_threads(1)
    try:
        began = time.thread_time()
        while len(times[True]) < _LEAST or time.thread_time() - began < _SECONDS:
            for half in (False, True):
                times[half].append(_pass(layer, inputs, half=half))
    finally:
        torch.set_num_threads(threads)
    return min(times[False]) / min(times[True])


def _pass(layer: nn.Module, inputs: torch.Tensor, *, half: bool) -> float:
    """Seconds of a forward and a backward pass."""
    began = time.thread_time()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        made = layer(inputs)
    made.float().sum().backward()
    return time.thread_time() - began
