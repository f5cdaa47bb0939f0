"""How a run computes: its precision, and whether torch can compile."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

import torch

from aang_core.errors import ConfigError
from aang_core.gradients.passes import Precision
from aang_core.tasks.processes import ALONE, Processes

PrecisionChoice = Literal["auto", "fp32", "bf16", "fp16"]
"""Values of ``--precision``."""

_NARROW = 128
"""Below this width, converting numbers costs much of what faster matrix products save."""
_PRODUCTS = ("amx_bf16", "avx512_bf16", "bf16")
"""Instructions for bf16 matrix products, by torch's names; the last one is ARM's."""
_HALF: Mapping[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}


def in_effect(choice: PrecisionChoice) -> Precision:
    """The chosen precision; for an ``auto`` that is not settled, fp32 on any machine."""
    return "fp32" if choice == "auto" else choice


def settle_precision(
    choice: PrecisionChoice, device: torch.device, width: int, processes: Processes = ALONE
) -> tuple[Precision, str | None]:
    """Decide which precision to compute in.

    ``auto`` depends on the device and the encoder's width, never on timing, so a command makes the
    same choice every time on one machine. Machines differ, so a run records the choice, and a
    resumed run keeps it. Several processes take bf16 if all of them would.

    Args:
        choice: what the user asked for.
        device: where training runs.
        width: hidden size of the encoder.
        processes: the processes that share the training.

    Returns:
        The precision, and a sentence that explains it; None if there is nothing to explain.

    Raises:
        ConfigError: the device does not compute in the chosen precision.
    """
    if choice == "auto":
        bf16, reason = gains_by_bf16(device, width)
        # A process without bf16 would make all others wait for it.
        agreed = not processes.largest(int(not bf16))
        if bf16 and not agreed:
            reason = "another process of this training gains nothing by bf16"
        precision: Precision = "bf16" if agreed else "fp32"
        return precision, f"--precision auto: {precision}, since {reason}"
    check_precision(choice, device)
    if choice == "bf16" and device.type == "cpu":
        gains, reason = gains_by_bf16(device, width)
        return choice, None if gains else f"--precision bf16 may be slower than fp32: {reason}"
    return choice, None


def check_precision(choice: PrecisionChoice, device: torch.device) -> None:
    """Refuse a precision that the device does not compute in.

    torch would emulate it, many times slower, or compute in fp32 and say nothing.

    Raises:
        ConfigError: the device does not compute in it.
    """
    if choice in ("auto", "fp32") or _computes_in(choice, device):
        return
    others = [other for other in _HALF if _computes_in(other, device)]
    raise ConfigError(
        f"--precision {choice}: {device} does not compute in it; give "
        f"{' or '.join(f'--precision {name}' for name in ('fp32', *others))}"
    )


def _computes_in(precision: str, device: torch.device) -> bool:
    """Whether a matrix product stays in half precision; for bf16 on CUDA, without emulation."""
    if device.type == "cuda" and precision == "bf16":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    with warnings.catch_warnings(), suppress(RuntimeError):
        # torch warns about a type that a device does not support, and computes in float32.
        warnings.simplefilter("ignore")
        one = torch.ones(1, 1, device=device)
        with torch.autocast(device.type, _HALF[precision]):
            return (one @ one).dtype == _HALF[precision]
    return False


def gains_by_bf16(device: torch.device, width: int) -> tuple[bool, str]:
    """Whether training is faster in bf16, which has only three digits, and why.

    On a CPU this needs instructions for bf16 products, which torch otherwise emulates, and a wide
    enough encoder. On an AMD EPYC with ``avx512_bf16``, on one core, forward and backward passes of
    an encoder of two layers are this many times as fast in bf16 as in fp32:

    ======  ====  ====  ====  ====  ====  ====  ====  ====
    width     64    96   128   192   256   384   512   768
    times   1.37  1.54  1.85  2.07  2.41  2.62  2.88  3.34
    ======  ====  ====  ====  ====  ====  ====  ====  ====

    AMX multiplies faster still. ARM was not measured.
    """
    if device.type == "cuda":
        supported = torch.cuda.is_bf16_supported(including_emulation=False)
        return supported, f"the GPU {'computes' if supported else 'does not compute'} in bf16"
    if device.type != "cpu":
        return False, f"bf16 is not tried on {device.type}"
    if width < _NARROW:
        return False, f"an encoder that is {width} wide gains little by bf16"
    there = torch.cpu.get_capabilities()
    found = next((name for name in _PRODUCTS if there.get(name)), None)
    if found is None or not torch.backends.mkldnn.is_available():
        return False, "this CPU has no instructions for bf16 that torch uses"
    return True, f"this CPU has instructions for bf16 ({found})"


def check_compiler(device: torch.device) -> None:
    """Compile a function of one line, as ``--compile`` does with the encoder.

    Without this, a missing or broken compiler would fail the first step, in the middle of a pass
    through the model.

    Args:
        device: the device to compile for.

    Raises:
        ConfigError: it cannot be compiled; the message says why.
    """
    try:
        torch.compile(lambda x: x + x, dynamic=True)(torch.zeros(8, device=device))
    # The errors of compilers have many classes, and torch wraps them in others.
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError(
            f"--compile: torch cannot compile on this machine: {lines[0] if lines else error!r}. "
            "Install a C++ compiler such as g++, or name one with CXX, or leave --compile out"
        ) from error
