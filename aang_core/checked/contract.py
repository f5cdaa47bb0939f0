"""Checks of tensors, shared by all stages.

Every call checks only the type, shape, dtype and device of a tensor, so that it never waits for an
accelerator. The first call of each primitive of an objective also checks all values;
:func:`~aang.assembly.rehearsal.rehearse` makes that call on two rows, on the CPU, before
anything is trained. Losses that are not finite later on are recorded on the device, and read when
training has to wait anyway.

A primitive that breaks its contract raises :class:`~aang_core.errors.PluginError`, which names the
primitive and its distribution, what was expected and what it returned.
"""

from typing import Any

import torch
from torch import Tensor

from aang_core.errors import PluginError
from aang_core.plugins.primitive import Primitive

INNOCENT = (torch.OutOfMemoryError,)
"""Too little memory is due to the model and the batch, not to the primitive that needed more."""


def expect(
    primitive: Primitive,
    what: str,
    value: Any,
    shape: tuple[int, ...],
    device: torch.device,
    letters: str,
    *dtypes: torch.dtype | None,
) -> None:
    """Check the shape, device and dtype of a tensor.

    Args:
        primitive: the primitive that returned the value.
        what: the name of the value in the message.
        value: the value.
        shape: the expected shape.
        device: the expected device.
        letters: the shape as the documentation writes it, such as ``B, T``.
        *dtypes: the dtypes allowed; None allows any floating dtype.

    Raises:
        PluginError: the value is not such a tensor.
    """
    if (
        isinstance(value, Tensor)
        and value.shape == shape
        and value.device == device
        and (value.dtype in dtypes or (None in dtypes and value.is_floating_point()))
    ):
        return
    kind = " or ".join("a floating dtype" if d is None else _name(d) for d in dtypes)
    place = "" if device.type == "cpu" else f" on {device}"
    expected = f"a tensor [{letters}] = {list(shape)} of {kind}{place}"
    raise broken(primitive, what, expected, described(value))


def broken(primitive: Primitive, what: str, expected: str, got: str) -> PluginError:
    """Return the error for a broken contract, for the caller to raise."""
    return primitive.fault(f"{what}: expected {expected}, got {got}")


def described(value: Any) -> str:
    """Describe a value in a few words: a tensor by its shape, dtype and device."""
    if not isinstance(value, Tensor):
        text = repr(value)
        return text if len(text) < 60 and "\n" not in text else f"an object of {type(value)}"
    place = "" if value.device.type == "cpu" else f" on {value.device}"
    return f"{list(value.shape)} of {_name(value.dtype)}{place}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
