"""Whether torch can compile on this machine, found out before a run begins."""

import torch
from torch import Tensor

from aang_core.errors import ConfigError


def check_compiler(device: torch.device) -> None:
    """Compile a function of one line, as ``--compile`` does with the encoder.

    Without this, a compiler that is missing or broken is found out at the first step, in the middle
    of a pass through the model.

    Args:
        device: the device to compile for.

    Raises:
        ConfigError: it cannot be compiled; the message says why.
    """
    try:
        torch.compile(_twice, dynamic=True)(torch.zeros(8, device=device))
    # The errors of compilers have many classes, and torch wraps them in others.
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError(
            f"--compile: torch cannot compile on this machine: {lines[0] if lines else error!r}. "
            "Install a C++ compiler such as g++, or name one with CXX, or leave --compile out"
        ) from error


def _twice(x: Tensor) -> Tensor:
    return x + x
