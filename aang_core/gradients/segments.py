"""The rows of a step as engines take them: tasks that share rows, rows that share a pass."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from aang_core.errors import AangError
from aang_core.tasks.task import Batch, Task

PASS_OVERHEAD = 256
"""Assumed cost of one more pass through the body, in tokens. It decides which rows share a pass,
and so affects rounding and which units dropout drops, but nothing else."""


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


class CannotPackError(AangError):
    """The gradients of several tasks' rows in one pass through a body cannot be separated."""


@runtime_checkable
class PacksRows(Protocol):
    """A body that can bring rows of different batches to one shape.

    Without these methods, a body only accepts rows of equal shape.
    """

    def pack(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """Concatenate the rows of all batches into one batch.

        Args:
            inputs: the body's keyword arguments for each batch.
        """
        ...

    def unpack(self, features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Cut the features of one batch's rows to the shape that the batch alone would have had.

        Args:
            features: ``[B, ...]``, the features of the rows in the packed batch.
            inputs: the body's keyword arguments for the batch alone.

        Returns:
            A view of ``features``.
        """
        ...


def batch_norm_of(body: nn.Module) -> str | None:
    """The name of a batch normalisation in the body that does not `rest`; None if there is none.

    It normalises a row by the other rows of the pass, so rows of several tasks in one pass would
    change each other's features. One without parameters does the same.
    """
    norms = ((name, m) for name, m in body.named_modules() if isinstance(m, _BatchNorm))
    return next((name for name, module in norms if not rests(module)), None)


def rests(module: nn.Module) -> bool:
    """Whether the caller has frozen a module and what it counts.

    It is in evaluation mode and has parameters, none of which is trained.
    """
    own = [parameter.requires_grad for parameter in module.parameters()]
    return bool(own) and not any(own) and not module.training


@dataclass(frozen=True)
class Pack:
    """Several batches concatenated into one.

    Attributes:
        inputs: keyword arguments of the body.
        rows: number of rows.
        parts: the rows of each batch.
        batches: the batches.
    """

    inputs: Mapping[str, Tensor]
    rows: int
    parts: Sequence[slice]
    batches: Sequence[Batch]

    @classmethod
    def of(cls, body: nn.Module, batches: Sequence[Batch]) -> "Pack":
        """Concatenate ``batches``.

        Args:
            body: the module that will run them.
            batches: the batches.

        Raises:
            CannotPackError: their shapes differ and the body has no method to pack them.
        """
        inputs = _concatenated(body, [batch.inputs for batch in batches])
        parts, start = [], 0
        for batch in batches:
            parts.append(slice(start, start + batch.rows))
            start += batch.rows
        # In the body, a tensor counts as having rows if its first dimension equals the number of
        # rows. If another dimension happens to have that size, a dummy row removes the ambiguity.
        if any(start in value.shape[1:] for value in inputs.values()):
            inputs = {name: torch.cat([value, value[-1:]]) for name, value in inputs.items()}
            start += 1
        return cls(inputs, start, parts, batches)

    def features(self, body: nn.Module, features: Tensor) -> list[Tensor]:
        """The features ``[B, ...]`` of each batch, cut out of those of all rows."""
        cut: Any = body.unpack if isinstance(body, PacksRows) else _whole
        return [
            cut(features[part], batch.inputs)
            for part, batch in zip(self.parts, self.batches, strict=True)
        ]


def _whole(features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    return features


def _concatenated(body: nn.Module, inputs: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    if isinstance(body, PacksRows):
        return body.pack(inputs)
    names = dict.fromkeys(name for part in inputs for name in part)
    try:
        return {name: torch.cat([part[name] for part in inputs]) for name in names}
    except (KeyError, RuntimeError) as error:
        raise CannotPackError(
            f"rows of different tasks cannot go through {type(body).__name__} together, because it "
            f"has no methods pack and unpack and their inputs differ ({error})"
        ) from error
