"""The rows of a step as engines take them: tasks that share rows, rows that share a pass."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from aang_core.tasks.task import Batch, Task

PASS_OVERHEAD = 256
"""Assumed cost of one more pass through the body, in tokens. It decides which rows share a pass,
and so has an influence on rounding and on which rows dropout hits, but on nothing else."""


@dataclass(frozen=True)
class Rider:
    """A task that shares another task's rows and its pass through the body.

    Attributes:
        task: the task.
        targets: of the rows of all batches, concatenated, for features padded to the longest of
            them (`aang_core.gradients.passes.joined`).
        coefficient: of its loss.
    """

    task: Task
    targets: Mapping[str, Tensor]
    coefficient: float


@dataclass(frozen=True)
class Segment:
    """One task's rows in a step.

    Attributes:
        task: the task.
        batches: its rows; within a batch all have the same length after padding.
        coefficient: of its loss.
        riders: further tasks on the same rows, which use the same pass through the body.
        remember: whether the dev head observes the features of these rows.
    """

    task: Task
    batches: Sequence[Batch]
    coefficient: float
    riders: Sequence[Rider] = ()
    remember: bool = False

    @property
    def members(self) -> Sequence["Rider | Segment"]:
        """Every task of the segment in the order that engines use: riders first, its own last."""
        return (*self.riders, self)


def members_of(segments: Sequence[Segment]) -> list["Rider | Segment"]:
    """Every task of several segments, in order."""
    return [member for segment in segments for member in segment.members]


def group_by_length(
    lengths: Sequence[int],
    overhead: int,
    *,
    rows: Sequence[int] | None = None,
    most_rows: int | None = None,
) -> list[list[int]]:
    """Put rows or batches into passes so that padding and passes together cost least.

    A pass costs its number of rows times its longest row, plus ``overhead``. The optimal split of
    items sorted by length is contiguous, so a shortest path over them finds it. Without a limit it
    never separates items of equal length, so the path is only as long as there are lengths.

    Args:
        lengths: length of each item, in tokens.
        overhead: cost of one more pass through the body, in tokens.
        rows: number of rows of each item; None for one each.
        most_rows: most rows of a pass of several items; None for no limit.

    Returns:
        Positions in ``lengths``, by pass, shortest rows first.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    before = [0, *itertools.accumulate(1 if rows is None else rows[i] for i in order)]
    best = [0.0] + [float("inf")] * len(order)
    start = [0] * (len(order) + 1)
    ends = [
        i
        for i in range(len(order) + 1)
        if most_rows is not None
        or i in (0, len(order))
        or lengths[order[i - 1]] < lengths[order[i]]
    ]
    for number, end in enumerate(ends[1:], 1):
        longest = lengths[order[end - 1]]
        for first in ends[:number]:
            count = before[end] - before[first]
            if most_rows is not None and count > most_rows and end - first > 1:
                continue
            cost = best[first] + count * longest + overhead
            if cost < best[end]:
                best[end], start[end] = cost, first
    groups: list[list[int]] = []
    end = len(order)
    while end > 0:
        groups.append(order[start[end] : end])
        end = start[end]
    return groups[::-1]


def share_passes(segments: Sequence[Segment], most_rows: int) -> list[list[int]]:
    """Which segments should go through the body together.

    Segments with several batches keep their own passes, because the mean of their loss is known
    only after the last batch.

    Args:
        segments: the segments.
        most_rows: most rows in a pass of several segments; see `largest_batch`.

    Returns:
        Positions of the segments, by pass.
    """
    whole = [i for i, segment in enumerate(segments) if len(segment.batches) == 1]
    batches = [segments[i].batches[0] for i in whole]
    groups = group_by_length(
        [tokens(batch) // max(batch.rows, 1) for batch in batches],
        PASS_OVERHEAD,
        rows=[batch.rows for batch in batches],
        most_rows=most_rows,
    )
    apart = [[i] for i, segment in enumerate(segments) if len(segment.batches) > 1]
    return [[whole[i] for i in group] for group in groups] + apart


def largest_batch(segments: Iterable[Segment]) -> int:
    """Rows of the largest batch of a step; no pass that several segments share has more."""
    return max(batch.rows for segment in segments for batch in segment.batches)


def tokens(batch: Batch) -> int:
    """Tokens of a batch, padding included: what a pass over it costs."""
    return min(tensor.numel() for tensor in batch.inputs.values())
