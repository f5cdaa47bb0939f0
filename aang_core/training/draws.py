"""Everything that a run draws at random: its tasks' rows, and the generators of all draws."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from aang_core.tasks.moving import to_device
from aang_core.tasks.processes import Processes
from aang_core.tasks.saved import saved_part, saved_tensor
from aang_core.tasks.task import Batch, SharingTask, Task, strata_of
from aang_core.training.balanced_order import BalancedOrder
from aang_core.training.prepared import Prepared, Request
from aang_core.training.rows import RowOrder, make_batches

OTHER_DROPOUT = 1_000_003
"""Distance between the dropout seeds of two processes; larger than any number of steps."""


def separate_dropout(seed: int, steps: int, processes: Processes) -> None:
    """Give every process but the first its own dropout seed, before a round.

    Dropout draws from torch's global generator; processes that compute different rows should also
    drop different units. What they drop depends on seed and steps alone, so that a resumed training
    drops the same.

    Args:
        seed: seed of the training.
        steps: steps taken so far.
        processes: the processes that share the training.
    """
    if not processes.first:
        torch.manual_seed(seed + OTHER_DROPOUT * processes.rank + steps)


def _order_of(task: Task) -> RowOrder | BalancedOrder:
    strata = strata_of(task)
    return RowOrder(len(task)) if strata is None else BalancedOrder(strata)


class Draws:
    """Rows of every task, as batches on the device, in a new random order for each pass.

    Args:
        tasks: the tasks, by the name of their row order.
        generator: source of every draw but dropout, which uses torch's global generator.
        device: where batches go.
        by_length: whether to put rows of similar length into the same batch.
        at_once: most rows of a batch; None for no limit.

    Attributes:
        prepared: batches made ahead.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        generator: torch.Generator,
        device: torch.device,
        by_length: bool = True,
        at_once: int | None = None,
    ) -> None:
        self.generator = generator
        self.orders = {name: _order_of(task) for name, task in tasks.items()}
        self.at_once = at_once
        self.prepared = Prepared(generator, enabled=device.type != "cpu")
        self._tasks = dict(tasks)
        self._device = device
        self._by_length = by_length

    @property
    def heads(self) -> list[nn.Module]:
        """The head of every task."""
        return [task.head for task in self._tasks.values()]

    def rows(self, order: str, count: int, parts: int = 1) -> list[Batch]:
        """The next rows of a task.

        Args:
            order: name of the row order.
            count: number of rows.
            parts: least number of batches for each group of rows of similar length.
        """
        return self.batches(order, self.take(order, count), parts)

    def take(self, order: str, count: int) -> Tensor:
        """Indices of the next rows of a task, int64 ``[count]``."""
        return self.orders[order].take(count, self.generator)

    def batches(self, order: str, indices: Tensor, parts: int = 1) -> list[Batch]:
        """The rows of a task at ``indices``, int64 ``[B]``, in batches."""

        def make() -> list[Batch]:
            batches = make_batches(
                self._tasks[order],
                indices,
                self.generator,
                at_once=self.at_once,
                by_length=self._by_length,
                parts=parts,
            )
            return [batch.to(self._device) for batch in batches]

        request = Request(("batches", order, self.at_once, parts), indices=indices)
        return self.prepared.get(request, make)

    def ride(self, task: SharingTask, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """The targets of a task that shares the rows of ``batches``."""

        def make() -> dict[str, Tensor]:
            targets = task.ride(batches, self.generator)
            return {name: to_device(value, self._device) for name, value in targets.items()}

        return self.prepared.get(Request(("ride",), (task, *batches)), make)

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Batches drawn within it are kept for later; no draw outside it changes."""
        orders = self.orders
        self.orders = {name: order.copy() for name, order in orders.items()}
        try:
            with self.prepared.ahead():
                yield
        finally:
            self.orders = orders

    def every_row(self, order: str, at_once: int) -> Iterator[Batch]:
        """Every row of a task once, shortest first, in batches of at most ``at_once`` rows."""
        task = self._tasks[order]
        lengths = task.lengths
        rows = torch.arange(len(task)) if lengths is None else torch.argsort(lengths, stable=True)
        for part in rows.split(min(at_once, self.at_once or at_once)):
            yield task.batch(part, self.generator).to(self._device)

    def some(
        self, names: tuple[str, ...], n: int, weights: Sequence[float] | None = None
    ) -> tuple[str, ...]:
        """Draw ``n`` of ``names`` without replacement.

        Args:
            names: what to draw from.
            n: how many to draw.
            weights: of each name, which is drawn in proportion to its weight among those left;
                None for equal weights.
        """
        if weights is None:
            drawn = torch.randperm(len(names), generator=self.generator)[:n]
        else:
            odds = torch.tensor(weights, dtype=torch.float64)
            drawn = torch.multinomial(odds, n, generator=self.generator)
        return tuple(names[i] for i in drawn.tolist())

    def state_dict(self) -> dict[str, Any]:
        """Generators and row orders. Called before every step, so it copies nothing large."""
        generators = {
            "bench": self.generator.get_state(),
            "torch": torch.default_generator.get_state(),
        }
        if self._device.type == "cuda":
            generators["device"] = torch.cuda.get_rng_state(self._device)
        orders = {name: order.state_dict() for name, order in self.orders.items()}
        return {"generators": generators, "rows": orders}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, so that later draws repeat.

        Raises:
            SavedStateError: it is not such a state.
        """
        generators, rows = saved_part(state, "generators"), saved_part(state, "rows")
        for name, order in self.orders.items():
            order.load_state_dict(saved_part(rows, name))
        saved_tensor(generators, "bench", self.generator.get_state())
        saved_tensor(generators, "torch", torch.default_generator.get_state())
        self.generator.set_state(generators["bench"])
        torch.default_generator.set_state(generators["torch"])
        # A state saved on another kind of device has no generator state for this one.
        if self._device.type == "cuda" and "device" in generators:
            torch.cuda.set_rng_state(generators["device"], self._device)
