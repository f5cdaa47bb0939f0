"""An auxiliary objective as a task: its four stages turned into a loss over rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core.assembly.end_task import END_TASK, encoder_inputs
from aang_core.assembly.stream_rows import StreamRows
from aang_core.corpora.tokens import PaddedRows, TokenRows
from aang_core.errors import PluginError
from aang_core.objectives.stages import (
    CorruptedRows,
    Corruption,
    Output,
    Representation,
    Transform,
    View,
    Vocabulary,
)
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
    representation: Representation
    output: Output
    head: nn.Module
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
        corrupted = self._corrupt(padded, generator)
        inputs = encoder_inputs(padded, corrupted.corrupted, corrupted.sees)
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

    def _corrupt(self, padded: PaddedRows, generator: torch.Generator) -> CorruptedRows:
        ids, selected = self._views(
            padded, self.transform(padded.ids, padded.ordinary, self.vocabulary, generator)
        )
        return CorruptedRows(
            original=padded.ids,
            corrupted=ids,
            selected=selected,
            ordinary=padded.ordinary,
            real=padded.real,
            labels=padded.labels,
            statistics=self.rows.document_statistics(),
            sees=self.representation(padded.real, generator),
            vocabulary=self.vocabulary,
            views=self.views,
        )

    def _views(self, padded: PaddedRows, corruption: Corruption) -> Corruption:
        """Undo the corruption in the views that show the original rows."""
        if "clean" not in self.shown:
            return corruption
        rows = len(padded.ids) // self.views
        clean = torch.tensor([view == "clean" for view in self.shown])
        clean = clean.repeat_interleave(rows).unsqueeze(1)
        return Corruption(
            torch.where(clean, padded.ids, corruption.ids), corruption.selected & ~clean
        )

    def _as_it_is(self, padded: PaddedRows, generator: torch.Generator) -> CorruptedRows:
        """Select tokens of the end task's rows, and check that nothing else changes."""
        rows = self._corrupt(padded, generator)
        full = padded.real.unsqueeze(1) & padded.real.unsqueeze(2)
        if not torch.equal(rows.corrupted, padded.ids):
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
    return PaddedRows(
        ids=_together([part.ids for part in parts]),
        real=_together([part.real for part in parts]),
        ordinary=_together([part.ordinary for part in parts]),
        token_types=_together(types) if types else None,
        labels=torch.cat(labels) if labels else None,
    )


def _joined(parts: Sequence[CorruptedRows]) -> CorruptedRows:
    """Join the corrupted rows of several batches, padded to the longest row."""
    labels = [part.labels for part in parts if part.labels is not None]
    return replace(
        parts[0],
        original=_together([part.original for part in parts]),
        corrupted=_together([part.corrupted for part in parts]),
        selected=_together([part.selected for part in parts]),
        ordinary=_together([part.ordinary for part in parts]),
        real=_together([part.real for part in parts]),
        sees=_together([part.sees for part in parts]),
        labels=torch.cat(labels) if labels else None,
    )


def _together(values: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors ``[B, T]`` or ``[B, T, T]``, padded to the largest T."""
    longest = max(value.shape[1] for value in values)
    return torch.cat([functional.pad(v, (0, longest - v.shape[1]) * (v.dim() - 1)) for v in values])
