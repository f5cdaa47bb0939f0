"""Rows of several tasks in one pass through the body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from aang_core.errors import AangError
from aang_core.tasks.task import Batch


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
    """The name of a batch normalisation in the body; None if there is none.

    It normalises a row by the other rows of the pass, so rows of several tasks in one pass would
    change each other's features. One without parameters does the same.
    """
    names = (name for name, module in body.named_modules() if isinstance(module, _BatchNorm))
    return next(names, None)


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
