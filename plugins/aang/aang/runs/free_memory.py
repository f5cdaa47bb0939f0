"""Returns memory that nothing uses to the operating system."""

import ctypes
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

SHARE = 0.03
"""Largest part of the time of a training that returning memory may take."""


class ReturnsFreeMemory:
    """An observer of a training on a CPU, which keeps its resident memory near what it uses.

    Batches differ in their numbers of rows and tokens, so the allocator of the GNU C library finds
    no freed block that fits, takes new memory and keeps the old: training grows for hundreds of
    steps. It is told to give whole free pages back. The next step takes most of them again, which
    costs system time: on some machines next to nothing, on others a seventh of a step. So the more
    it costs, the less often it is done. Other C libraries are left alone.

    Args:
        share: largest part of the time that this may take.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._trim = _malloc_trim()
        self._share = share
        self._last = float("-inf")
        self._before: float | None = None  # System time before a return whose cost is not known.
        self._cost = 0.0

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Return free memory, unless the last return has not paid off yet."""
        if self._trim is None:
            return
        spent = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        if self._before is not None:
            self._cost = spent - self._before
            self._before = None
        if time.monotonic() - self._last >= self._cost / self._share:
            self._trim(0)
            self._last = time.monotonic()
            self._before = spent

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
