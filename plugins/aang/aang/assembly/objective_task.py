"""An auxiliary objective as a task: its four stages turned into a loss over rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang.assembly.end_task import encoder_inputs
from aang.assembly.placed_rows import PlacedRows, place_rows, unchanged_where
from aang.assembly.stream_rows import StreamRows
from aang.corpora.tokens import PaddedRows, TokenRows
from aang.task_types.token_labels import NO_LABEL
from aang_core.checked.representation import CheckedRepresentation
from aang_core.errors import PluginError
from aang_core.objectives.stages import (
    CorruptedRows,
    Output,
    RowsBefore,
    ShownRows,
    Transform,
    View,
    Vocabulary,
)
from aang_core.tasks.names import END_TASK
from aang_core.tasks.task import Batch, RowLosses


@dataclass(frozen=True)
class ObjectiveTask:
    """data → transform → representation → output over one source's tokenised rows.

    Attributes:
        name: such as ``task/bert-op/bidirectional/denoise``.
        factors: the name of each stage's primitive, by stage.
        rows: the rows of its data.
        vocabulary: the tokenizer's vocabulary.
        transform: the transform, checked.
        representation: the representation, checked.
        output: the output, checked.
        head: the output's head.
        longest: the most tokens that the encoder reads.
        shown: the views of each row that the encoder reads, in order.
        couples_rows: whether the loss of a row depends on other rows of the batch, because the
            output says so or because each row has several views.
        of_step: whether its rows are those that the end task trains on in the step.
    """

    name: str
    factors: Mapping[str, str]
    rows: TokenRows | StreamRows
    vocabulary: Vocabulary
    transform: Transform
    representation: CheckedRepresentation
    output: Output
    head: nn.Module
    longest: int
    shown: Sequence[View] = ("corrupted",)
    couples_rows: bool = False
    of_step: bool = False

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    @property
    def views(self) -> int:
        """How many times the encoder reads each row."""
        return len(self.shown)

    @property
    def shares(self) -> str | None:
        """The key that this objective shares with others whose rows and pass it can share.

        Objectives that differ only in their output have the same key. With a single view, one over
        the end task's rows of the step shares the end task's own pass; the traits of its
        primitives ensure that they do not change the rows.
        """
        if self.of_step:
            return END_TASK if self.views == 1 else None
        stages = [name for stage, name in self.factors.items() if stage != "output"]
        return "/".join([*stages, *self.shown])

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        padded = self.rows.rows(rows.repeat(self.views))
        placed = self._corrupt(padded, generator)
        corrupted = self._seen(placed, generator)
        inputs = encoder_inputs(placed.rows, placed.rows.ids, corrupted.sees)
        targets = self.output.targets(corrupted)
        return Batch(inputs, targets, len(padded.ids), origin=corrupted)

    def ride(self, batches: Sequence[Batch], generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :meth:`aang_core.tasks.task.SharingTask.ride`.

        Raises:
            PluginError: a primitive changes the rows of the end task.
        """
        origins = [batch.origin for batch in batches]
        if isinstance(origins[0], PaddedRows):
            # Joined first, so that the draws do not depend on how the rows are split.
            return self.output.targets(self._as_it_is(_joined_rows(origins), generator))
        return self.output.targets(_joined(origins))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self.output.losses(head, features, targets)

    def _corrupt(self, padded: PaddedRows, generator: torch.Generator) -> PlacedRows:
        """The rows in all their views, after the transform."""
        corruption = self.transform(padded.ids, padded.ordinary, self.vocabulary, generator)
        if "clean" in self.shown:
            rows = len(padded.ids) // self.views
            clean = torch.tensor([view == "clean" for view in self.shown])
            corruption = unchanged_where(clean.repeat_interleave(rows), padded, corruption)
        return place_rows(padded, corruption, self.longest)

    def _seen(self, placed: PlacedRows, generator: torch.Generator) -> CorruptedRows:
        """The rows as the output receives them, with who sees whom."""
        rows = placed.rows
        shown = ShownRows(rows.ids, rows.real, placed.text, self.vocabulary)
        return CorruptedRows(
            original=placed.original,
            corrupted=rows.ids,
            selected=placed.selected,
            ordinary=rows.ordinary,
            real=rows.real,
            labels=rows.labels,
            token_labels=rows.token_labels,
            statistics=self.rows.document_statistics(),
            sees=self.representation(shown, generator),
            vocabulary=self.vocabulary,
            views=self.views,
            before=placed.before,
        )

    def _as_it_is(self, padded: PaddedRows, generator: torch.Generator) -> CorruptedRows:
        """Select tokens of the end task's rows, and check that nothing else changes."""
        rows = self._seen(self._corrupt(padded, generator), generator)
        full = padded.real.unsqueeze(1) & padded.real.unsqueeze(2)
        if rows.before is not None or not torch.equal(rows.corrupted, padded.ids):
            changed = f"transform {self.factors['transform']} changes them"
        elif not torch.equal(rows.sees & padded.real.unsqueeze(2), full):
            changed = f"representation {self.factors['representation']} hides tokens of them"
        else:
            return rows
        raise PluginError(
            f"{self.name}: shares the end task's pass through the encoder, whose rows it must read "
            f"as they are, but the {changed}; its trait says otherwise"
        )


def _joined_rows(parts: Sequence[PaddedRows]) -> PaddedRows:
    """Join the rows of several batches, padded to the longest row."""
    types = [part.token_types for part in parts if part.token_types is not None]
    labels = [part.labels for part in parts if part.labels is not None]
    tags = [part.token_labels for part in parts if part.token_labels is not None]
    return replace(
        parts[0],
        ids=_together([part.ids for part in parts]),
        real=_together([part.real for part in parts]),
        ordinary=_together([part.ordinary for part in parts]),
        token_types=_together(types) if types else None,
        labels=torch.cat(labels) if labels else None,
        token_labels=_together(tags, padding=NO_LABEL) if tags else None,
    )


def _joined(parts: Sequence[CorruptedRows]) -> CorruptedRows:
    """Join the corrupted rows of several batches, padded to the longest row."""
    labels = [part.labels for part in parts if part.labels is not None]
    tags = [part.token_labels for part in parts if part.token_labels is not None]
    moved = any(part.before is not None for part in parts)
    return replace(
        parts[0],
        original=_together([part.original for part in parts]),
        corrupted=_together([part.corrupted for part in parts]),
        selected=_together([part.selected for part in parts]),
        ordinary=_together([part.ordinary for part in parts]),
        real=_together([part.real for part in parts]),
        sees=_together([part.sees for part in parts]),
        labels=torch.cat(labels) if labels else None,
        token_labels=_together(tags, padding=NO_LABEL) if tags else None,
        before=_joined_before(parts) if moved else None,
    )


def _joined_before(rows: Sequence[CorruptedRows]) -> RowsBefore:
    parts = [part.before or RowsBefore(part.original, part.ordinary, part.origin) for part in rows]
    return RowsBefore(
        ids=_together([part.ids for part in parts]),
        ordinary=_together([part.ordinary for part in parts]),
        origin=_together([part.origin for part in parts], padding=-1),
    )


def _together(values: Sequence[Tensor], padding: int = 0) -> Tensor:
    """Concatenate tensors ``[B, T]`` or ``[B, T, T]``, padded to the largest T."""
    longest = max(value.shape[1] for value in values)
    missing = [(0, longest - value.shape[1]) * (value.dim() - 1) for value in values]
    padded = zip(values, missing, strict=True)
    return torch.cat([functional.pad(value, more, value=padding) for value, more in padded])
