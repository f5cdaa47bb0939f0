"""Reads values of a saved state, and refuses those that no training has saved.

A checkpoint may have valid checksums and wrong contents. What is wrong is found where a value is
restored, because later it would be an error of something else, or none.
"""

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from aang_core.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

LARGEST = 2**63 - 1
"""The largest whole number in a saved state."""

_SHOWN = 60


class SavedStateError(DataError):
    """A saved state that no training has saved."""


def saved_count(state: Mapping[str, Any], name: str, *, least: int = 0, most: int = LARGEST) -> int:
    """The whole number ``name`` of a state.

    Raises:
        SavedStateError: it is missing, no whole number, or not from ``least`` to ``most``.

    Examples:
        >>> saved_count({"steps": 3}, "steps")
        3
    """
    value = _value(state, name)
    if type(value) is not int or not least <= value <= most:
        raise wrong(name, f"a whole number from {least} to {most}", value)
    return value


def saved_number(state: Mapping[str, Any], name: str) -> float:
    """The finite number ``name`` of a state.

    Raises:
        SavedStateError: it is missing or not a finite number.
    """
    value = _value(state, name)
    if type(value) not in (int, float) or not _is_finite(value):
        raise wrong(name, "a finite number", value)
    return float(value)


def saved_numbers(state: Mapping[str, Any], name: str) -> dict[str, float]:
    """The finite numbers by name that are under ``name`` in a state.

    Raises:
        SavedStateError: they are missing, or one is not a finite number.
    """
    part = saved_part(state, name)
    return {key: saved_number(part, key) for key in part}


def saved_part(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping ``name`` of a state.

    Raises:
        SavedStateError: it is missing or not a mapping.
    """
    value = _value(state, name)
    if not isinstance(value, Mapping):
        raise wrong(name, "values by name", value)
    return value


def saved_tensor(state: Mapping[str, Any], name: str, like: "Tensor") -> "Tensor":
    """The tensor ``name`` of a state.

    Raises:
        SavedStateError: it is missing, or has another shape or dtype than ``like``.
    """
    value = _value(state, name)
    if not _is_tensor(value) or (value.shape, value.dtype) != (like.shape, like.dtype):
        raise wrong(name, _described(like), value)
    return value


def wrong(name: str, expected: str, value: object) -> SavedStateError:
    """The error for a saved value that no training has saved.

    Args:
        name: its name.
        expected: what it should be.
        value: what it is.
    """
    found = _described(value) if _is_tensor(value) else repr(value)
    if len(found) > _SHOWN:
        found = f"{found[:_SHOWN]}…"
    return SavedStateError(f"{name!r} should be {expected} and is {found}")


def _value(state: Mapping[str, Any], name: str) -> Any:
    if not isinstance(state, Mapping):
        raise wrong(name, "one of several values by name", state)
    if name not in state:
        raise SavedStateError(f"{name!r} is missing")
    return state[name]


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is too large
        return False


def _is_tensor(value: object) -> "TypeGuard[Tensor]":
    # Whoever has a tensor has imported torch; who reads a run folder should not have to.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _described(tensor: "Tensor") -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
