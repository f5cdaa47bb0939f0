"""Rows of a task in an order in which every class comes equally often."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from aang_core.tasks.saved import saved_part, wrong
from aang_core.training.rows import RowOrder


class BalancedOrder:
    """Row indices of one task: the classes take turns, each with its own rows in random order.

    Every class comes once before any comes again, in a new random order each time. Within a class,
    every row comes once per pass over the class. So rows of a rare class come more often than those
    of a frequent one.

    Args:
        strata: int64 ``[N]``, the class of each row.

    Examples:
        >>> import torch
        >>> order = BalancedOrder(torch.tensor([0, 0, 0, 0, 0, 1]))
        >>> order.take(6, torch.Generator().manual_seed(0)).tolist().count(5)
        3
    """

    def __init__(self, strata: Tensor) -> None:
        self._rows = [(strata == c).nonzero().flatten() for c in strata.unique().tolist()]
        self._orders = [RowOrder(len(rows)) for rows in self._rows]
        self._turns = RowOrder(len(self._rows))

    def take(self, n: int, generator: torch.Generator) -> Tensor:
        """The next ``n`` row indices, int64 ``[n]``."""
        turns = self._turns.take(n, generator)
        taken = torch.empty(n, dtype=torch.int64)
        for c in turns.unique().tolist():
            places = (turns == c).nonzero().flatten()
            taken[places] = self._rows[c][self._orders[c].take(len(places), generator)]
        return taken

    def copy(self) -> "BalancedOrder":
        """An order that goes on from here by itself."""
        made = copy.copy(self)
        made._orders = [order.copy() for order in self._orders]
        made._turns = self._turns.copy()
        return made

    def state_dict(self) -> dict[str, Any]:
        """The orders of the classes and of the rows of each; not copied."""
        return {
            "turns": self._turns.state_dict(),
            "classes": [order.state_dict() for order in self._orders],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore saved orders.

        Raises:
            SavedStateError: they are no such orders.
        """
        self._turns.load_state_dict(saved_part(state, "turns"))
        classes = state.get("classes")
        if not isinstance(classes, list) or not all(isinstance(c, Mapping) for c in classes):
            raise wrong("classes", "a list of orders", classes)
        # Their number differs only if the user has resumed the training with other data.
        for order, saved in zip(self._orders, classes, strict=False):
            order.load_state_dict(saved)
