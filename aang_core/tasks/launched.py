"""What a launcher says, in environment variables, about the processes of a training."""

import os

from aang_core.errors import AangError


def is_first() -> bool:
    """Whether this is the first process of a training, which speaks for all, or its only one."""
    return (os.environ.get("RANK") or "0") == "0"


def launched_processes() -> int:
    """How many processes a launcher has started for this training."""
    return _number("WORLD_SIZE", 1)


def local_processes() -> int:
    """How many processes of this training are on the same machine, as far as the launcher says."""
    return _number("LOCAL_WORLD_SIZE", 1)


def local_rank() -> int:
    """Rank of this process among those on the same machine."""
    return _number("LOCAL_RANK", 0)


def _number(name: str, default: int) -> int:
    """What an environment variable says; if it is empty, as if it were not set.

    Raises:
        AangError: it is not a whole number.
    """
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdecimal()) or len(value) > 9:
        raise AangError(
            f"{name}={value!r}: is not a whole number; torchrun and accelerate launch set it. "
            f"Without them, unset {name}"
        )
    return int(value)
