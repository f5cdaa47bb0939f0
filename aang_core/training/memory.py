"""Running out of memory, on any device: how to recognise it."""

import gc

import torch

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
