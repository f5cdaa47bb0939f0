"""An accelerator that is not there: tensors that compute on the CPU and say that they are on it.

Within :func:`pretend_device`, whatever is moved to ``cuda`` or made there becomes an `Elsewhere`
tensor with real numbers, so that a training step runs as usual and can be compared with one on the
CPU. What CUDA refuses is refused: an operation on tensors of two devices. Whatever would make the
host wait for the device is counted, with the line of ours that caused it.
"""

import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    return_and_correct_aliasing,
)
from torch.utils._pytree import tree_iter, tree_map

ROOT = Path(__file__).parents[2]
DEVICE = torch.device("cuda", 0)

_aten = torch.ops.aten
_WAITS = {
    *(_aten._local_scalar_dense, _aten.equal, _aten.is_nonzero, _aten.nonzero),
    *(_aten.masked_select, _aten._unique2, _aten.unique_consecutive, _aten.unique_dim),
    _aten.bincount,
}
"""Operations whose result the host needs: as a number, as a size, or to take a branch."""

_INDEXING = {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
_MIXES = _INDEXING | {_aten.copy_, _aten._to_copy}
"""Operations that may take tensors of two devices."""

_FROM_VALUES = {torch.tensor, torch.as_tensor, torch.asarray}
"""Functions that copy numbers of the host to the device, and wait until they are there."""


class Elsewhere(Tensor):
    """A tensor on the accelerator.

    Args:
        inside: its numbers, on the CPU.
    """

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            inside.size(),
            strides=inside.stride(),
            storage_offset=inside.storage_offset(),
            dtype=inside.dtype,
            # To torch's own code, which would want a driver for CUDA.
            device="meta",
        )
        made.inside = inside
        return made

    device = property(lambda self: DEVICE)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_meta = property(lambda self: False)  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"Elsewhere({self.inside!r})"

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        operation = func.overloadpacket
        if operation not in _MIXES:
            _check_devices(operation, (args, named))
        target = named.get("device")
        to_host = target is not None and torch.device(target).type == "cpu"
        if (
            to_host
            or operation in _WAITS
            or (operation is _aten.copy_ and _waits_to_copy(*args, **named))
            or (operation in _INDEXING and _waits_to_index(args[1]))
            or (operation is _aten.repeat_interleave and named.get("output_size") is None)
        ):
            _count()
        if target is not None:
            named["device"] = "cpu"
        made = func(*tree_map(_inside, args), **tree_map(_inside, named))
        if to_host or (operation is _aten.copy_ and not isinstance(args[0], Elsewhere)):
            return made
        return return_and_correct_aliasing(func, args, named, tree_map(_elsewhere, made))


class Pinned(Tensor):
    """A tensor on the host, in memory that the device can read by itself."""


class _Moves(TorchFunctionMode):
    """Moves to the device and reads of its numbers, as Python code asks for them."""

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func is Tensor.pin_memory:
            return _pinned(args[0]).as_subclass(Pinned)
        if func in (Tensor.tolist, Tensor.item) and isinstance(args[0], Elsewhere):
            _count()
            return func(args[0].inside)
        if func is Tensor.to:
            device, dtype = _asked(args[1:], named)
            if device is not None and device.type == DEVICE.type:
                tensor = args[0] if dtype is None else args[0].to(dtype)
                if isinstance(tensor, Elsewhere):
                    return tensor
                asked = named.get("non_blocking") or any(a is True for a in args[1:])
                # CUDA may wait for the device before it copies from memory that is not pinned.
                if not (asked and isinstance(args[0], Pinned)):
                    _count()
                return _moved(tensor.as_subclass(Tensor))
            return func(*args, **named)
        device = named.get("device")
        if device is not None and torch.device(device).type == DEVICE.type:
            if func in _FROM_VALUES:
                _count()
            return _moved(func(*args, **{**named, "device": "cpu"}))
        if func is Tensor.new_tensor and isinstance(args[0], Elsewhere):
            _count()
        return func(*args, **named)


class _Factories(TorchDispatchMode):
    """Tensors that torch's own code makes beside an `Elsewhere`, which it takes for ``meta``."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func.overloadpacket is _aten._pin_memory:
            # Autograd's hooks come here directly, past Python's own functions.
            return _pinned(args[0])
        device = named.get("device")
        if device is None or torch.device(device).type not in ("meta", DEVICE.type):
            return func(*args, **named)
        named["device"] = "cpu"
        with _disable_current_modes():
            made = func(*tree_map(_inside, args), **tree_map(_inside, named))
        return tree_map(_elsewhere, made)


def _pinned(tensor: Tensor) -> Tensor:
    """A copy with the same strides, as torch makes it in pinned memory.

    It refuses tensors whose elements share memory, such as expanded ones.
    """
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)


_waits: Counter[str] = Counter()


@contextmanager
def pretend_device() -> Iterator[Counter[str]]:
    """Within it there is a ``cuda`` device.

    Yields:
        How often the host waited for the device, by the line of ours that made it wait.
    """
    _waits.clear()
    supported = _foreach_utils._get_foreach_kernels_supported_devices
    generator = torch.default_generator
    with pytest.MonkeyPatch.context() as patch:
        # Modules exchange their parameters for tensors of another class.
        patch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
        # Tensors of inference mode cannot be wrapped; without gradients they have the same numbers.
        patch.setattr(torch._C, "_InferenceMode", lambda mode: torch.set_grad_enabled(not mode))
        # The device is up, and its random numbers are the CPU's.
        patch.setattr(torch.cuda, "_lazy_init", lambda: None)
        patch.setattr(torch.cuda, "get_rng_state", lambda device=None: generator.get_state())
        patch.setattr(
            torch.cuda, "set_rng_state", lambda state, device=None: generator.set_state(state)
        )
        patch.setattr(
            _foreach_utils,
            "_get_foreach_kernels_supported_devices",
            lambda: [*supported(), "meta"],
        )
        with _Moves(), _Factories():
            yield _waits


def _asked(
    given: Sequence[Any], named: Mapping[str, Any]
) -> tuple[torch.device | None, torch.dtype | None]:
    """The device and the type that ``Tensor.to`` is asked for."""
    device, dtype = named.get("device"), named.get("dtype")
    for value in given:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, torch.dtype):
            dtype = value
        elif isinstance(value, str | torch.device):
            device = value
    return None if device is None else torch.device(device), dtype


def _moved(tensor: Tensor) -> Tensor:
    moved = Elsewhere(tensor.detach().clone())
    return moved.requires_grad_() if tensor.requires_grad else moved


def _inside(value: object) -> object:
    return value.inside if isinstance(value, Elsewhere) else value


def _elsewhere(value: object) -> object:
    return Elsewhere(value) if isinstance(value, Tensor) else value


def _waits_to_copy(to: Tensor, source: Tensor, non_blocking: bool = False) -> bool:
    """Whether a copy goes to the host, or from there without ``non_blocking``."""
    between = isinstance(to, Elsewhere) != isinstance(source, Elsewhere)
    return between and (not isinstance(to, Elsewhere) or not non_blocking)


def _waits_to_index(indices: Iterable[object]) -> bool:
    """Whether an index is a mask, which has to be counted, or has to be copied from the host."""
    return any(
        isinstance(i, Tensor)
        and (not isinstance(i, Elsewhere) or i.dtype in (torch.bool, torch.uint8))
        for i in indices
    )


def _check_devices(operation: object, given: object) -> None:
    # A CPU tensor of no dimensions is a number to CUDA, but not to fused AdamW.
    numbers = operation is not _aten._fused_adamw_
    for value in tree_iter(given):
        if isinstance(value, Tensor) and not isinstance(value, Elsewhere):
            if numbers and not value.dim():
                continue
            raise RuntimeError(f"{operation}: tensors on {DEVICE} and on {value.device}")


def _count() -> None:
    ours = [
        frame
        for frame in traceback.extract_stack()
        if Path(frame.filename).is_relative_to(ROOT)
        and "tests" not in Path(frame.filename).relative_to(ROOT).parts
        and ".venv" not in frame.filename
    ]
    place = ours[-1] if ours else traceback.extract_stack()[0]
    _waits[f"{Path(place.filename).name}: {place.name}"] += 1
