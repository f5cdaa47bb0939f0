"""Running out of memory, on any device: how to recognise and report it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from aang_core.errors import OutOfMemoryError

_SIGNS = ("can't allocate memory", "out of memory", "alloc_failed", "bad_alloc")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory has run out; on a CPU, torch has no type for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(s in str(error).lower() for s in _SIGNS)


def in_a_line(error: BaseException) -> str:
    """The sentence of the allocator's message that says that memory has run out."""
    sentences = str(error).strip().replace("\n", ". ").split(". ")
    found = [s for s in sentences if any(sign in s.lower() for sign in _SIGNS)]
    return (found or sentences)[0] or type(error).__name__


def free() -> None:
    """Release memory that nothing refers to any more."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@contextmanager
def running_out_told() -> Iterator[None]:
    """Turn errors about memory into one that tells the user what to do.

    Raises:
        OutOfMemoryError: memory has run out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"not enough memory: {in_a_line(error)}. Give the run more, or take a smaller --model, "
            "--max-length or --batch-size"
        ) from error
