"""Rows whose tokens a transform has deleted, inserted or moved, as the encoder reads them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from aang.corpora.tokens import PaddedRows
from aang.task_types.task_type import NO_LABEL
from aang_core.objectives.stages import Corruption, RowsBefore


@dataclass(frozen=True)
class PlacedRows:
    """Rows after a transform, padded on the right; B rows, T tokens.

    Attributes:
        rows: the rows, with the corrupted ids. An inserted token is not ordinary.
        original: ``[B, T]`` int64, what each token was before; an inserted token is what it is.
        selected: ``[B, T]`` bool, the prediction targets.
        before: the rows before; None if every token is where it was.
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
    """Move the tokens that are left to the beginning of their rows, and let all else follow them.

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
    together = _together(real)
    real, origin, ids = together(real), together(origin), together(ids)
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
        selected=together(selected) & real,
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


def _together(real: Tensor) -> Callable[[Tensor], Tensor]:
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
