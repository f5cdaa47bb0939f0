"""An auxiliary objective as a task: its four stages turned into a loss over rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang.assembly.end_task import encoder_inputs
from aang.assembly.placed_rows import PlacedRows, place_rows, unchanged_where
from aang.assembly.stream_rows import StreamRows
from aang.corpora.tokens import PaddedRows, TokenRows
from aang.task_types.task_type import NO_LABEL
from aang_core.contracts import CheckedRepresentation
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
from aang_core.tasks.signals import END_TASK
from aang_core.tasks.task import Batch, RowLosses, Task

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
        longest: the most tokens that the encoder reads.
        shown: the views of each row that the encoder reads, in order.
        couples_rows: whether the loss of a row depends on other rows of the batch, because the
            output says so or because each row has several views.
        of_step: whether its rows are those that the end task trains on in the step.
    """

    name: str
    factors: Mapping[str, str] = field()
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


def rehearse(task: ObjectiveTask, hidden_size: int) -> None:
    """Run ``task`` on its first and its shortest row, each twice, with random hidden states.

    This finds the mistakes of primitives on the CPU, where reading values is cheap, and before a
    run folder exists. It does not change the draws of the training: it uses its own generator, and
    restores the state of torch's, which dropout draws from.

    Args:
        task: the objective.
        hidden_size: H of the encoder.

    Raises:
        PluginError: a primitive breaks the contract of its stage.
    """
    # The shortest row is the most likely to have no target and nothing to attend to; equal rows are
    # the most likely to be compared with each other.
    rows = torch.stack([torch.tensor(0), task.lengths.argmin()]).unique().repeat(2)
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        batch = task.batch(rows, generator)
        _refuse_lost_specials(task, rows, batch.origin)
        shape = (*batch.inputs["input_ids"].shape, hidden_size)
        dtype = next((p.dtype for p in task.head.parameters()), torch.float32)
        hidden = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        losses = task.losses(task.head, hidden, batch.targets)
        if not task.couples_rows:
            _refuse_coupling(task, losses, hidden)


def _refuse_lost_specials(task: ObjectiveTask, numbers: Tensor, rows: CorruptedRows) -> None:
    """Raise PluginError if the transform has removed, changed or moved special tokens."""
    padded = task.rows.rows(numbers.repeat(task.views))
    special = padded.real & ~padded.ordinary
    for row, origin in enumerate(rows.origin):
        left = rows.real[row] & ~rows.ordinary[row] & (origin >= 0)
        wanted = special[row].nonzero().flatten()
        if (
            not torch.equal(origin[left], wanted)
            or not torch.equal(rows.corrupted[row][left], padded.ids[row][wanted])
            or bool(special[row, 0] and origin[0] != 0)
        ):
            raise PluginError(
                f"{task.name}: transform {task.factors['transform']} removes, changes or moves "
                "special tokens of a row; all of them have to stay, in their order, and the first "
                "one at the beginning"
            )


def _refuse_coupling(task: ObjectiveTask, losses: RowLosses, hidden: Tensor) -> None:
    """Raise PluginError if the first row's loss depends on another row."""
    (gradient,) = torch.autograd.grad(losses.sums[0], hidden, allow_unused=True)
    if gradient is not None and bool(gradient[1:].ne(0).any()):
        raise PluginError(
            f"{task.name}: the loss of a row of output {task.factors['output']} depends on other "
            "rows, which may come in other batches; an output that compares rows with each other "
            "has to say so with the attribute couples_rows = True"
        )
