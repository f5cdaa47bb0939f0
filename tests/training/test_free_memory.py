"""Memory that nothing uses goes back to the operating system."""

import resource
import sys
from pathlib import Path

import pytest

from tests.support.training import ReturnsFreeMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

BLOCK = 32 * 1024
"""Bytes that the allocator takes from its heap, where a block in use keeps those below it."""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def leave_holes() -> list[bytes]:
    """Take 128 MB, free every other block and keep the rest."""
    # Written to: pages that the system has only promised are not resident.
    blocks = [b"x" * BLOCK for _ in range(4096)]
    return blocks[::2]


def test_free_blocks_between_used_ones_are_returned() -> None:
    returns = ReturnsFreeMemory()
    kept = leave_holes()
    before = resident()
    returns.after_round(1, {})
    assert resident() < before - len(kept) * BLOCK / 2


def test_a_return_that_costs_much_is_not_repeated_soon() -> None:
    """Pages that are taken again after it are its cost, here for more than a step of no time."""
    returns = ReturnsFreeMemory(share=1e-6)
    returns.after_round(1, {})
    kept = leave_holes()
    before = resident()
    returns.after_evaluation(1, {}, True, {})
    returns.after_round(2, {})
    assert resident() > before - len(kept) * BLOCK / 2


def test_a_return_that_costs_little_is_repeated() -> None:
    returns = ReturnsFreeMemory(share=1e6)
    returns.after_round(1, {})
    kept = leave_holes()
    before = resident()
    returns.after_evaluation(1, {}, True, {})
    assert resident() < before - len(kept) * BLOCK / 2
