"""The gradient of an embedding: few rows of a large matrix."""

from typing import NamedTuple

import torch
from torch import Tensor


class SparseRows(NamedTuple):
    """Rows of a ``[V, ...]`` matrix whose other rows are zero.

    torch's sparse tensors are not used, because coalescing them waits for the device.

    Attributes:
        ids: ``[N]`` int64, each row at most once; V in unused places.
        values: ``[N, ...]``, zero in unused places.
    """

    ids: Tensor
    values: Tensor

    @classmethod
    def summed(cls, ids: Tensor, values: Tensor, size: int) -> "SparseRows":
        """Sum the values of equal ids.

        There are as many places as values, so that the host need not wait for the number of
        different ids.

        Args:
            ids: ``[N]`` int64, rows of the matrix.
            values: ``[N, ...]``.
            size: number of rows of the matrix, V.
        """
        order, place, unique = _places(ids, size)
        return cls(unique, torch.zeros_like(values).index_add_(0, place, values[order]))

    def of(self, matrix: Tensor) -> Tensor:
        """The same rows of a dense ``matrix``, ``[N, ...]``; an arbitrary row in unused places."""
        return matrix[self.ids.clamp(max=len(matrix) - 1)]

    def dot(self, other: "SparseRows", size: int) -> Tensor:
        """Inner product of two matrices of ``size`` rows, a scalar."""
        place = torch.full((size + 1,), len(other.ids), device=self.ids.device)
        place[other.ids] = torch.arange(len(other.ids), device=self.ids.device)
        place[size] = len(other.ids)
        found = place[self.ids]
        # A row of zeros for rows that the other does not have.
        padded = torch.cat([other.values, torch.zeros_like(other.values[:1])])
        return (self.values * padded[found]).sum()

    def square(self) -> Tensor:
        """Squared norm, a scalar."""
        return self.values.square().sum()

    def add_to(self, total: Tensor, coefficient: float) -> None:
        """Add ``coefficient`` times this to ``total``, a dense matrix of V rows."""
        valid = self.ids.clamp(max=len(total) - 1)
        total.index_add_(0, valid, self.values, alpha=coefficient)


def touched(ids: Tensor, matrix: Tensor) -> Tensor:
    """The rows of a dense matrix at the places of ``SparseRows.summed`` with the same ids.

    Args:
        ids: ``[N]`` int64, rows of the matrix.
        matrix: ``[V, ...]``.

    Returns:
        ``[N, ...]``, with an arbitrary row in unused places.
    """
    _, _, unique = _places(ids, len(matrix))
    return matrix[unique.clamp(max=len(matrix) - 1)]


def _places(ids: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The order that sorts ``ids`` ``[N]``, the place of each sorted id, the id of each place."""
    ordered, order = ids.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    place = first.cumsum(0) - 1
    return order, place, torch.full_like(ordered, size).scatter_(0, place, ordered)
