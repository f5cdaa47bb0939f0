"""Choosing the precision of a training if the user does not."""

import time
import warnings
from collections.abc import Mapping
from typing import Literal

import torch
from torch import nn

from aang_core.errors import ConfigError
from aang_core.gradients.passes import Precision
from aang_core.tasks.processes import ALONE, Processes

PrecisionChoice = Literal["auto", "fp32", "bf16", "fp16"]
"""Values of ``--precision``."""

WORTH_IT = 1.3
"""On a CPU, ``auto`` takes bf16, which has three digits only, if it is this much faster."""
_NARROW = 128
"""Below this width, converting the numbers costs as much as faster products save."""
_ROWS = 512
_HALF: Mapping[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}
_SECONDS = 0.1
_LEAST = 3


def in_effect(choice: PrecisionChoice) -> Precision:
    """The chosen precision; fp32 for ``auto`` if nothing was measured, the same on any machine."""
    return "fp32" if choice == "auto" else choice


def settle_precision(
    choice: PrecisionChoice, device: torch.device, width: int, processes: Processes = ALONE
) -> tuple[Precision, str | None]:
    """Decide which precision to compute in.

    On a CPU, ``auto`` depends on a measurement, so it is decided once, before training starts, and
    the run records the decision: a resumed run measures nothing. Several processes take bf16 if all
    of them would.

    Args:
        choice: what the user asked for.
        device: where training runs.
        width: hidden size of the encoder, at which the speed is measured.
        processes: the processes that share the training.

    Returns:
        The precision, and a sentence that explains it; None if there is nothing to explain.

    Raises:
        ConfigError: the device does not compute in the chosen precision.
    """
    if choice == "auto":
        bf16, reason = _automatic(device, width)
        # A process without bf16 would make all others wait for it.
        agreed = not processes.largest(int(not bf16))
        if bf16 and not agreed:
            reason = "another process of this training gains nothing by bf16"
        precision: Precision = "bf16" if agreed else "fp32"
        return precision, f"--precision auto is {precision}: {reason}"
    check_precision(choice, device)
    if choice == "bf16" and device.type == "cpu":
        speed = bf16_speed(width)
        if speed < 1:
            return choice, (
                f"--precision bf16 makes training slower here: at {speed:.2f} times the speed of "
                "fp32 on this CPU, which has no instructions for it"
            )
    return choice, None


def check_precision(choice: PrecisionChoice, device: torch.device) -> None:
    """Refuse a precision that the device does not compute in.

    torch would emulate it, many times slower, or compute in fp32 and say nothing.

    Raises:
        ConfigError: it does not.
    """
    if choice in ("auto", "fp32") or _computes_in(choice, device):
        return
    others = [other for other in _HALF if _computes_in(other, device)]
    raise ConfigError(
        f"--precision {choice}: {device} does not compute in it; give "
        f"{' or '.join(f'--precision {name}' for name in ('fp32', *others))}"
    )


def _computes_in(precision: str, device: torch.device) -> bool:
    """Whether a product in half precision is one, in hardware where that can be asked."""
    if device.type == "cuda" and precision == "bf16":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        return _product(device, _HALF[precision]) == _HALF[precision]
    except RuntimeError:
        return False


def _product(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """The type of a product under autocast."""
    one = torch.ones(1, 1, device=device)
    with warnings.catch_warnings():
        # torch warns of a type that it does not know on a device, and goes on in float32.
        warnings.simplefilter("ignore")
        with torch.autocast(device.type, dtype):
            return (one @ one).dtype


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
    """The speed of a layer in bf16 relative to fp32, on one core of this CPU.

    A processor's flags promise instructions, not speed, so forward and backward passes, conversions
    included, are timed in turn for about a tenth of a second, and the fastest of each counts. Other
    programs may use the cores too, so one core is used and only this thread's CPU time counts.

    Args:
        width: input and output width of the layer.
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
    """CPU seconds of a forward and a backward pass."""
    began = time.thread_time()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        made = layer(inputs)
    made.float().sum().backward()
    return time.thread_time() - began
