"""Rows of several tasks in one pass through the body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.tasks.task import Batch


class CannotPackError(AangError):
    """Rows of several tasks cannot go through a body together and be told apart again."""


@runtime_checkable
class PacksRows(Protocol):
    """A body that knows how to bring rows of different batches to one shape.

    A body without these methods can be given rows of equal shape only.
    """

    def pack(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """The rows of all batches as one batch, in order."""
        ...

    def unpack(self, features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Features of one batch's rows, cut to the shape that the batch alone would have had.

        What is returned is a view of ``features``.
        """
        ...


class RowFreeMethod(NamedTuple):
    """A method that computes from parameters what is the same for every row.

    It returns a tensor whose first dimension is the batch, every entry of it alike: the biases of
    relative positions, for instance. Where that is used, a gradient cannot be split by row.

    owner: the module whose method it is. source: the module whose parameters it reads.
    """

    owner: nn.Module
    name: str
    source: nn.Module


@runtime_checkable
class HasRowFreeMethods(Protocol):
    """A body that names such methods of its modules."""

    def row_free_methods(self) -> Sequence[RowFreeMethod]:
        """All of them."""
        ...


@dataclass(frozen=True)
class Pack:
    """Batches side by side.

    inputs: of the body. rows: how many there are. parts: the rows of each batch.
    """

    inputs: Mapping[str, Tensor]
    rows: int
    parts: Sequence[slice]
    batches: Sequence[Batch]

    @classmethod
    def of(cls, body: nn.Module, batches: Sequence[Batch]) -> "Pack":
        """Put ``batches`` side by side.

        Raises:
            CannotPackError: their shapes differ and the body has no method to pack them.
        """
        inputs = _concatenated(body, [batch.inputs for batch in batches])
        parts, start = [], 0
        for batch in batches:
            parts.append(slice(start, start + batch.rows))
            start += batch.rows
        # Whether a tensor in the body has rows is told by its first dimension. Where another
        # dimension is as long as there are rows, a row that belongs to nobody tells them apart.
        if any(start in value.shape[1:] for value in inputs.values()):
            inputs = {name: torch.cat([value, value[-1:]]) for name, value in inputs.items()}
            start += 1
        return cls(inputs, start, parts, batches)

    def features(self, body: nn.Module, features: Tensor) -> list[Tensor]:
        """The features of each batch, cut out of those of all."""
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
