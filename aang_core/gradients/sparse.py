"""The gradient of an embedding: few rows of a large matrix."""

from typing import NamedTuple

import torch
from torch import Tensor


class SparseRows(NamedTuple):
    """Rows of a ``[V, ...]`` matrix; all others are zero.

    ids: ``[N]`` int64, each row at most once; V where a place is not used.
    values: ``[N, ...]``, zero at places that are not used.
    """

    ids: Tensor
    values: Tensor

    @classmethod
    def summed(cls, ids: Tensor, values: Tensor, size: int) -> "SparseRows":
        """Sum ``values`` ``[N, ...]`` of equal ``ids`` ``[N]``, rows of a matrix of ``size`` rows.

        As many places as there are values, so that no host has to wait for how many differ.
        """
        order, place, unique = _places(ids, size)
        return cls(unique, torch.zeros_like(values).index_add_(0, place, values[order]))

    def of(self, matrix: Tensor) -> Tensor:
        """The same rows of a dense ``matrix``, ``[N, ...]``; any row at places not used."""
        return matrix[self.ids.clamp(max=len(matrix) - 1)]

    def dot(self, other: "SparseRows", size: int) -> Tensor:
        """Inner product of two matrices of ``size`` rows, a scalar."""
        place = torch.full((size + 1,), len(other.ids), device=self.ids.device)
        place[other.ids] = torch.arange(len(other.ids), device=self.ids.device)
        place[size] = len(other.ids)
        found = place[self.ids]
        # A row of zeros stands for what the other does not hold.
        padded = torch.cat([other.values, torch.zeros_like(other.values[:1])])
        return (self.values * padded[found]).sum()

    def square(self) -> Tensor:
        """Squared norm, a scalar."""
        return self.values.square().sum()

    def add_to(self, total: Tensor, coefficient: float) -> None:
        """Add ``coefficient`` times this to a dense matrix of V rows."""
        valid = self.ids.clamp(max=len(total) - 1)
        total.index_add_(0, valid, self.values, alpha=coefficient)


def touched(ids: Tensor, matrix: Tensor) -> Tensor:
    """The rows of a dense ``matrix`` that a gradient summed over ``ids`` ``[N]`` has, in its order.

    ``[N, ...]``, with any row at places that the gradient does not use.
    """
    _, _, unique = _places(ids, len(matrix))
    return matrix[unique.clamp(max=len(matrix) - 1)]


def _places(ids: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """An order of ``ids`` ``[N]``, the place of each in that order, and the id of each place."""
    ordered, order = ids.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    place = first.cumsum(0) - 1
    return order, place, torch.full_like(ordered, size).scatter_(0, place, ordered)
