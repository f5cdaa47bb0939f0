"""What the seams of all stages share: expectations of tensors, and what breaks them.

Every call is checked by what a tensor says of itself, its type, shape, dtype and device, so that no
accelerator is ever waited for. The first call of each primitive of an objective is checked to the
last value besides; :func:`~aang_core.assembly.rehearsal.rehearse` makes that call on two rows, on
the CPU, before anything is trained. Losses that stop being finite later are remembered on the
device and read where training stands still anyway.

What breaks the contract is a :class:`~aang_core.errors.PluginError` that names the primitive and
its distribution, and says what was expected and got.
"""

from typing import Any

import torch
from torch import Tensor

from aang_core.errors import PluginError
from aang_core.plugins.primitive import Primitive

INNOCENT = (torch.OutOfMemoryError,)
"""A lack of memory is the fault of the model and the batch, not of who happened to ask for more."""


def expect(
    primitive: Primitive,
    what: str,
    value: Any,
    shape: tuple[int, ...],
    device: torch.device,
    letters: str,
    *dtypes: torch.dtype | None,
) -> None:
    """Expect a tensor of this shape, on this device and of one of these dtypes.

    letters: the shape as the documentation writes it. A dtype of None stands for any real number.
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
    """The error for something that the contract does not allow; for the caller to raise."""
    return primitive.fault(f"{what}: expected {expected}, got {got}")


def described(value: Any) -> str:
    """A value in a few words, a tensor by its shape, dtype and device."""
    if not isinstance(value, Tensor):
        text = repr(value)
        return text if len(text) < 60 and "\n" not in text else f"an object of {type(value)}"
    place = "" if value.device.type == "cpu" else f" on {value.device}"
    return f"{list(value.shape)} of {_name(value.dtype)}{place}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
