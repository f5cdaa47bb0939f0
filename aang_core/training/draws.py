"""Everything that a run draws: the rows of its tasks, and the generators behind all draws."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, SharingTask, Task
from aang_core.training.rows import RowOrder, make_batches

OTHER_DROPOUT = 1_000_003
"""Far enough from one process's seed to the next that no step of a run bridges it."""


def separate_dropout(seed: int, steps: int, processes: Processes) -> None:
    """Let each process but the first draw dropout of its own.

    Dropout draws from torch's own generator, and should drop other units for other rows.

    Args:
        seed: Of the training.
        steps: Those that it has behind it.
        processes: Those that share it.
    """
    if not processes.first:
        torch.manual_seed(seed + OTHER_DROPOUT * processes.rank + steps)


class Draws:
    """Rows of every task, in an order drawn anew for each pass, as batches on the device.

    tasks: by the name of their order.
    generator: source of every draw but dropout, which draws from torch's own generator.
    by_length: whether rows of like length come together.
    at_once: the most rows of a batch; None for no limit.
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
        self.orders = {name: RowOrder(len(task)) for name, task in tasks.items()}
        self.at_once = at_once
        self._tasks = dict(tasks)
        self._device = device
        self._by_length = by_length

    def rows(self, order: str, count: int, parts: int = 1) -> list[Batch]:
        """The next rows of a task, each of the batches they come in made of ``parts`` or more."""
        return self.batches(order, self.take(order, count), parts)

    def take(self, order: str, count: int) -> Tensor:
        """Which rows of a task come next, int64 ``[count]``."""
        return self.orders[order].take(count, self.generator)

    def batches(self, order: str, indices: Tensor, parts: int = 1) -> list[Batch]:
        """The rows of a task with these ``indices``, in batches."""
        batches = make_batches(
            self._tasks[order],
            indices,
            self.generator,
            at_once=self.at_once,
            by_length=self._by_length,
            parts=parts,
        )
        return [batch.to(self._device) for batch in batches]

    def ride(self, task: SharingTask, batches: Sequence[Batch]) -> dict[str, Tensor]:
        """The targets of a task that shares the rows of ``batches``."""
        targets = task.ride(batches, self.generator)
        return {n: value.to(self._device, non_blocking=True) for n, value in targets.items()}

    def every_row(self, order: str, at_once: int) -> Iterator[Batch]:
        """Every row of a task once, by length, in batches of ``at_once`` rows at most."""
        task = self._tasks[order]
        lengths = task.lengths
        rows = torch.arange(len(task)) if lengths is None else torch.argsort(lengths, stable=True)
        for part in rows.split(min(at_once, self.at_once or at_once)):
            yield task.batch(part, self.generator).to(self._device)

    def some(
        self, names: tuple[str, ...], n: int, weights: Sequence[float] | None = None
    ) -> tuple[str, ...]:
        """n of ``names`` without replacement.

        weights: each is drawn in proportion to its weight among those left; None for even ones.
        """
        if weights is None:
            drawn = torch.randperm(len(names), generator=self.generator)[:n]
        else:
            odds = torch.tensor(weights, dtype=torch.float64)
            drawn = torch.multinomial(odds, n, generator=self.generator)
        return tuple(names[i] for i in drawn.tolist())

    def state_dict(self) -> dict[str, Any]:
        """Generators and row orders. It is taken before every step, so it copies nothing large."""
        generators = {
            "bench": self.generator.get_state(),
            "torch": torch.default_generator.get_state(),
        }
        if self._device.type == "cuda":
            generators["device"] = torch.cuda.get_rng_state(self._device)
        orders = {name: order.state_dict() for name, order in self.orders.items()}
        return {"generators": generators, "rows": orders}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` gave: what was drawn since is drawn again."""
        generators = state["generators"]
        self.generator.set_state(generators["bench"])
        torch.default_generator.set_state(generators["torch"])
        # A state that was saved on another kind of device has none for this one.
        if self._device.type == "cuda" and "device" in generators:
            torch.cuda.set_rng_state(generators["device"], self._device)
        for name, order in self.orders.items():
            order.load_state_dict(state["rows"][name])
