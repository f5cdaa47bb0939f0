"""What engines compute with: rows of tasks, in segments and passes; the interface of engines."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.ledger import GradientStatistics
from aang_core.gradients.loss_scale import LossScale
from aang_core.tasks.processes import Processes
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


class GradientEngine(Protocol):
    """Computes the gradient of a step and, in the same passes, each task's statistics against v.

    Attributes:
        splits_rows: whether a task's rows should come in several batches if that saves padding. An
            engine that runs the rows of all tasks together gains nothing from it.
        processes: the processes that share a step. Rows of the end task and of dev should come in
            at least as many batches.
        dev_head: the head that the dev gradient goes through.
        scale: factor on losses in half precision; gradients are divided by it again.
        losses: scalars on the device, for the tasks of the last step in the order of `members_of`
            over the auxiliary segments and, last, the end task's.
    """

    splits_rows: bool
    processes: Processes
    dev_head: DevHead
    scale: LossScale
    losses: Sequence[Tensor]

    def limit_rows(self, rows: int) -> None:
        """From now on, run at most ``rows`` rows of all tasks in one pass, to save memory.

        The rows of a task with more than that must come in several batches.
        """
        ...

    def step(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """Leave Σ coefficient · ∇loss in ``.grad`` of every parameter of the body and the heads.

        Args:
            end: the end task's rows.
            auxiliaries: the auxiliary tasks' rows.
            dev: rows of the end task's dev set to measure against; None for a step without v, which
                fits no dev head.
            norms: measure ‖g_k‖ without dev rows, too.

        Returns:
            The statistics; None without dev rows and ``norms``.
        """
        ...


def group_by_length(
    lengths: Sequence[int],
    overhead: int,
    *,
    rows: Sequence[int] | None = None,
    most_rows: int | None = None,
) -> list[list[int]]:
    """Put rows or batches into passes so that padding and passes together cost least.

    A pass costs its number of rows times its longest row, plus ``overhead``. The optimal split of
    items sorted by length is contiguous, so a shortest path over them finds it in O(B²).

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
    for end in range(1, len(order) + 1):
        longest = lengths[order[end - 1]]
        for first in range(end):
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
