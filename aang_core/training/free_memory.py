"""Returns memory that nothing uses to the operating system."""

import ctypes
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

PAUSE = 0.5
"""Least seconds between two returns, which take some milliseconds each."""


class ReturnsFreeMemory:
    """An observer of a training on a CPU, which keeps its resident memory near what it uses.

    Batches differ in their numbers of rows and tokens, so the allocator of the GNU C library finds
    no freed block that fits, takes new memory and keeps the old: training grows for hundreds of
    steps. It is told to give whole free pages back. Other C libraries are left alone.

    Args:
        pause: least seconds between two returns.
    """

    def __init__(self, pause: float = PAUSE) -> None:
        self._trim = _malloc_trim()
        self._pause = pause
        self._last = float("-inf")

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Return free memory, unless this was done less than the pause ago."""
        if self._trim is not None and time.monotonic() - self._last >= self._pause:
            self._trim(0)
            self._last = time.monotonic()

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Return what the evaluation has used, likewise."""
        self.after_round(step, {})


def _malloc_trim() -> Callable[[int], int] | None:
    """The function of the GNU C library that returns free memory; None with other libraries."""
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
