"""An auxiliary objective as a task: its four stages turned into a loss over rows.

A transform may delete, insert or move tokens; what belongs to a token then moves with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang.assembly.end_task import encoder_inputs
from aang.assembly.stream_rows import StreamRows
from aang.corpora.tokens import PaddedRows, TokenRows
from aang.modeling.body import EncoderBody
from aang.task_types.task_type import NO_LABEL
from aang_core.contracts import CheckedOutput, CheckedRepresentation, CheckedTransform
from aang_core.errors import PluginError
from aang_core.objectives.stages import (
    CorruptedRows,
    Corruption,
    EmbeddedRows,
    RowsBefore,
    ShownRows,
    View,
    Vocabulary,
)
from aang_core.tasks.task import Batch, RowLosses, Task, to_device
from aang_core.tasks.workbench import END_TASK

RowsT = TypeVar("RowsT", PaddedRows, CorruptedRows, RowsBefore)

_PADDING = {"token_labels": NO_LABEL, "origin": -1}
"""What pads a row, by the name of its part; 0 pads the others."""


@dataclass(frozen=True)
class ObjectiveTask(Task):
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
        body: the encoder, for noise on its embeddings.
        longest: the most tokens that the encoder reads.
        shown: the views of each row that the encoder reads, in order.
        couples_rows: whether the loss of a row depends on other rows of the batch, because the
            output says so or because each row has several views.
        of_step: whether its rows are those that the end task trains on in the step.
        part: int64 indices of the rows that it has; None for all.
    """

    name: str
    factors: Mapping[str, str] = field()
    rows: TokenRows | StreamRows
    vocabulary: Vocabulary
    transform: CheckedTransform
    representation: CheckedRepresentation
    output: CheckedOutput
    head: nn.Module
    body: EncoderBody
    longest: int
    shown: Sequence[View] = ("corrupted",)
    couples_rows: bool = False
    of_step: bool = False
    part: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths if self.part is None else self.rows.lengths[self.part]

    @property
    def views(self) -> int:
        """How many times the encoder reads each row."""
        return len(self.shown)

    @property
    def shares(self) -> str | None:
        """The key that this objective shares with others whose rows and pass it can share.

        Objectives that differ only in their output have the same key. With a single view, one over
        the end task's rows of the step shares the end task's own pass; the traits of its
        primitives ensure that they do not change the rows. Noise on embeddings may depend on its
        own objective's loss, so it is not shared.
        """
        if self.transform.noises:
            return None
        if self.of_step:
            return END_TASK if self.views == 1 else None
        stages = [name for stage, name in self.factors.items() if stage != "output"]
        return "/".join([*stages, *self.shown])

    def __len__(self) -> int:
        return len(self.rows) if self.part is None else len(self.part)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        rows = rows if self.part is None else self.part[rows]
        padded = self.rows.rows(rows.repeat(self.views))
        changed, corrupted = self._changed(padded, generator)
        inputs = encoder_inputs(changed, corrupted.sees)
        targets = self.output.targets(corrupted)
        return Batch(inputs, targets, len(padded.ids), origin=corrupted)

    def prepared(self, batch: Batch, generator: torch.Generator) -> Batch:
        """See :meth:`aang_core.tasks.task.Task.prepared`: noise on the embeddings, if there is any.

        The gradient that noise may depend on is computed in single precision.
        """
        if not self.transform.noises:
            return batch
        corrupted = torch.tensor([view == "corrupted" for view in self.shown])
        corrupted = corrupted.repeat_interleave(batch.rows // self.views)
        embeddings = self.body.embeddings(batch.inputs["input_ids"]).detach()
        noisy = to_device(batch.origin.ordinary & corrupted.unsqueeze(1), embeddings.device)

        def gradient(noise: Tensor) -> Tensor:
            with torch.enable_grad():
                at = (noise * noisy.unsqueeze(2)).detach().requires_grad_()
                features = self.body(**batch.inputs, noise=at)
                losses = self.losses(self.head, features, batch.targets)
                return torch.autograd.grad(losses.sums.sum(), at)[0] * noisy.unsqueeze(2)

        noise = self.transform.noise(EmbeddedRows(embeddings, noisy, gradient), generator)
        inputs = {**batch.inputs, "noise": noise * noisy.unsqueeze(2)}
        return replace(batch, inputs=inputs)

    def ride(self, batches: Sequence[Batch], generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :meth:`aang_core.tasks.task.Task.ride`.

        Raises:
            PluginError: a primitive changes the rows of the end task.
        """
        origins = [batch.origin for batch in batches]
        if isinstance(origins[0], PaddedRows):
            # Joined first, so that the draws do not depend on how the rows are split.
            return self.output.targets(self._as_it_is(_joined(origins), generator))
        return self.output.targets(_joined(origins))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self.output.losses(head, features, targets)

    def _changed(
        self, padded: PaddedRows, generator: torch.Generator
    ) -> tuple[PaddedRows, CorruptedRows]:
        """The rows in all their views after the transform, and as the output receives them."""
        corruption = self.transform(padded.ids, padded.ordinary, self.vocabulary, generator)
        if "clean" in self.shown:
            clean = torch.tensor([view == "clean" for view in self.shown])
            clean = clean.repeat_interleave(len(padded.ids) // self.views)
            corruption = unchanged_where(clean, padded, corruption)
        placed = place_rows(padded, corruption, self.longest)
        rows = placed.rows
        shown = ShownRows(rows.ids, rows.real, placed.text, self.vocabulary)
        return rows, CorruptedRows(
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
        _, rows = self._changed(padded, generator)
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


def _joined(parts: Sequence[RowsT]) -> RowsT:
    """Join the rows of several batches, padded to the longest row."""
    joined: dict[str, Any] = {}
    for entry in fields(parts[0]):
        values = [getattr(part, entry.name) for part in parts]
        if entry.name == "before" and any(value is not None for value in values):
            joined["before"] = _joined([_before(part) for part in parts])
        elif entry.name == "labels" and values[0] is not None:
            joined["labels"] = torch.cat(values)
        elif isinstance(values[0], Tensor):
            joined[entry.name] = _together(values, _PADDING.get(entry.name, 0))
    return replace(parts[0], **joined)


def _before(rows: Any) -> RowsBefore:
    return rows.before or RowsBefore(rows.original, rows.ordinary, rows.origin)


def _together(values: Sequence[Tensor], padding: int = 0) -> Tensor:
    """Concatenate tensors ``[B, T]`` or ``[B, T, T]``, padded to the largest T."""
    longest = max(value.shape[1] for value in values)
    missing = [(0, longest - value.shape[1]) * (value.dim() - 1) for value in values]
    padded = zip(values, missing, strict=True)
    return torch.cat([functional.pad(value, more, value=padding) for value, more in padded])


@dataclass(frozen=True)
class PlacedRows:
    """Rows after a transform, padded on the right; B rows, T tokens.

    Attributes:
        rows: the rows, with the corrupted ids. An inserted token is not ordinary.
        original: ``[B, T]`` int64, what each token was before; an inserted token counts as itself.
        selected: ``[B, T]`` bool, the prediction targets.
        before: the rows before; None if no token has moved.
    """

    rows: PaddedRows
    original: Tensor
    selected: Tensor
    before: RowsBefore | None

    @property
    def text(self) -> Tensor:
        """Which tokens are neither special nor padding, inserted ones included: ``[B, T]`` bool."""
        if self.before is None:
            return self.rows.ordinary
        return self.rows.ordinary | (self.rows.real & (self.before.origin < 0))


def place_rows(padded: PaddedRows, corruption: Corruption, longest: int) -> PlacedRows:
    """Move the tokens that are left, with all that belongs to them, to the beginning of their rows.

    A row that has become longer than ``longest`` loses its last tokens, but no special one, as when
    it is tokenised.

    Args:
        padded: the rows before the transform; B rows, S tokens.
        corruption: what the transform returned for them.
        longest: the most tokens that the encoder reads.
    """
    ids, selected, real, origin = corruption
    if real is None and origin is None:
        return PlacedRows(replace(padded, ids=ids), padded.ids, selected, None)
    origin = _identity(padded) if origin is None else origin
    real = torch.ones_like(selected) if real is None else real
    inserted, place = origin < 0, origin.clamp(min=0)
    real = real & (inserted | padded.real.gather(1, place))
    text = real & (inserted | padded.ordinary.gather(1, place))
    real = real & ~_last(text, (real.sum(dim=1) - longest).clamp(min=0))
    moved = _to_the_beginning(real)
    real, origin, ids = moved(real), moved(origin), moved(ids)
    origin = origin.masked_fill(~real, -1)
    inserted, place = real & (origin < 0), origin.clamp(min=0)
    ids = ids.masked_fill(~real, padded.pad_id)
    rows = replace(
        padded,
        ids=ids,
        real=real,
        ordinary=padded.ordinary.gather(1, place) & real & ~inserted,
        token_types=_types(padded, origin, real),
        token_labels=_token_labels(padded, origin),
    )
    return PlacedRows(
        rows,
        original=torch.where(real & ~inserted, padded.ids.gather(1, place), ids),
        selected=moved(selected) & real,
        before=RowsBefore(padded.ids, padded.ordinary, origin),
    )


def unchanged_where(clean: Tensor, padded: PaddedRows, corruption: Corruption) -> Corruption:
    """Undo the corruption in the rows ``clean``, ``[B]`` bool."""
    clean = clean.unsqueeze(1)
    ids, selected, real, origin = corruption
    if real is None and origin is None:
        return Corruption(torch.where(clean, padded.ids, ids), selected & ~clean)
    origin = _identity(padded) if origin is None else origin
    real = torch.ones_like(selected) if real is None else real
    width = max(ids.shape[1], padded.ids.shape[1])

    def either(before: Tensor, after: Tensor) -> Tensor:
        return torch.where(clean, _widened(before, width), _widened(after, width))

    return Corruption(
        ids=either(padded.ids, ids),
        selected=_widened(selected, width) & ~clean,
        real=either(padded.real, real),
        origin=either(_identity(padded), origin),
    )


def _identity(padded: PaddedRows) -> Tensor:
    return torch.arange(padded.ids.shape[1]).expand_as(padded.ids)


def _last(text: Tensor, numbers: Tensor) -> Tensor:
    """The last ``numbers`` ``[B]`` of the tokens ``text`` ``[B, T]`` of each row."""
    from_the_end = text.flip(1).cumsum(dim=1).flip(1)
    return text & (from_the_end <= numbers.unsqueeze(1))


def _to_the_beginning(real: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that moves the values of real tokens to the beginning of each row, in order."""
    width = max(1, int(real.sum(dim=1).max()))
    order = (~real).long().argsort(dim=1, stable=True)[:, :width]
    return lambda values: values.gather(1, order)


def _types(padded: PaddedRows, origin: Tensor, real: Tensor) -> Tensor | None:
    """The token types; an inserted token has that of the token before it."""
    if padded.token_types is None:
        return None
    place = torch.arange(origin.shape[1]).expand_as(origin)
    from_row = place.masked_fill(origin < 0, 0).cummax(dim=1).values
    known = origin.gather(1, from_row).clamp(min=0)
    return padded.token_types.gather(1, known).masked_fill(~real, padded.pad_type)


def _token_labels(padded: PaddedRows, origin: Tensor) -> Tensor | None:
    """The labels of tokens, which move with them; an inserted token has none."""
    if padded.token_labels is None:
        return None
    return padded.token_labels.gather(1, origin.clamp(min=0)).masked_fill(origin < 0, NO_LABEL)


def _widened(values: Tensor, width: int) -> Tensor:
    """Values ``[B, T]`` with zeros after them, which ``real`` marks as padding."""
    return functional.pad(values, (0, width - values.shape[1]))
