"""What weighters ask of the dev set: its loss along updates, and the model's score."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call

from aang_core.errors import AangError, WeighterError
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.tasks.workbench import DevLossAlong, Update, require_finite_score
from aang_core.training.draws import Draws
from aang_core.training.run_tasks import DEV
from aang_core.training.updates import ParameterUpdate, buffers_after, moved, own_updates


class DevSet:
    """The dev rows of a run, as weighters use them.

    Args:
        body: the module that all tasks share.
        end_task: the end task.
        draws: source of the rows.
        rows: rows of a batch.
        score: the dev metric over a number of rows, or over all of them for None; None if there is
            no metric.
        processes: the processes that share the rows.
    """

    def __init__(
        self,
        body: nn.Module,
        end_task: Task,
        draws: Draws,
        rows: int,
        score: Callable[[int | None], float] | None,
        processes: Processes,
    ) -> None:
        self._loss = DevLoss(body, end_task)
        self._draws = draws
        self._rows = rows
        self._score = score
        self._processes = processes

    def loss(
        self, updates: Sequence[Update], coefficients: Sequence[float], batches: int | None
    ) -> DevLossAlong:
        """See `Workbench.dev_loss`."""
        drawn: Iterable[Batch] = self._draws.every_row(DEV, self._rows)
        if batches is not None:
            drawn = [b for _ in range(batches) for b in self._draws.rows(DEV, self._rows)]
        own, processes = own_updates(updates, coefficients), self._processes
        loss, gradient = self._loss.along(own, coefficients, drawn, processes)
        loss, *gradient = processes.agree([loss, *gradient])
        return DevLossAlong(loss, gradient)

    def score(self, rows: int | None) -> float:
        """See `Workbench.dev_score`.

        Raises:
            AangError: there is no metric, or the score is not finite.
            WeighterError: ``rows`` is less than one.
        """
        if rows is not None and rows < 1:
            raise WeighterError(f"a dev score over {rows} rows; ask for 1 or more, or all of them")
        if self._score is None:
            raise AangError("this weighter asks for dev scores; give the bench a score")
        (score,) = self._processes.agree([self._score(rows)])
        return require_finite_score(score)


class DevLoss(nn.Module):
    """The end task's loss over dev rows, as a function of body and head."""

    def __init__(self, body: nn.Module, end_task: Task) -> None:
        super().__init__()
        self.body = body
        self.head = end_task.head
        self._task = end_task

    def forward(self, batch: Batch) -> RowLosses:
        """The losses of a batch, one per row."""
        return self._task.losses(self.head, self.body(**batch.inputs), batch.targets)

    def along(
        self,
        updates: Sequence[ParameterUpdate],
        coefficients: Sequence[float],
        batches: Iterable[Batch],
        processes: Processes = ALONE,
    ) -> tuple[float, list[float]]:
        """The mean loss over all targets at θ + Σ α_t δ_t, and its gradient with respect to α.

        The derivative by α_t is ⟨∇_θ L, δ_t⟩, and ∇_θ L is summed over the batches, so one
        backward pass per batch suffices and memory is that of one batch. Dropout is off. θ are the
        parameters; buffers have the values that applying the updates would leave.

        Args:
            updates: the δ_t.
            coefficients: the α_t, one for each update.
            batches: dev rows.
            processes: the processes that share the batches.

        Returns:
            The loss, and its derivative by each α_t.
        """
        own = dict(self.named_parameters())
        reached = [name for name, p in own.items() if any(p in u.deltas for u in updates)]
        values = {
            name: moved(parameter.detach(), parameter, updates, coefficients)
            for name, parameter in own.items()
        }
        for name, value in self._buffers_after(updates, coefficients).items():
            values[name] = value
        places = [values[name].requires_grad_() for name in reached]
        gradients: dict[str, Tensor] = {}
        like = next(self.body.parameters())
        total = torch.zeros(2, dtype=torch.float64, device=like.device)
        was_training = self.training
        self.eval()
        with _without_kernels(self.body):
            for number, batch in enumerate(batches):
                if number % processes.size != processes.rank:
                    continue
                losses: RowLosses = functional_call(self, values, (batch,))
                summed = losses.sums.sum()
                total += torch.stack([summed.detach().double(), losses.counts.sum().double()])
                if summed.requires_grad:
                    parts = torch.autograd.grad(summed, places, allow_unused=True)
                    _add_up(gradients, dict(zip(reached, parts, strict=True)))
        self.train(was_training)
        slopes = [_slope(update, own, gradients, like) for update in updates]
        (numbers,) = processes.sum([torch.cat([total, torch.stack(slopes)] if slopes else [total])])
        loss, count, *by_alpha = numbers.tolist()
        return loss / max(count, 1.0), [slope / max(count, 1.0) for slope in by_alpha]

    def _buffers_after(
        self, updates: Sequence[ParameterUpdate], coefficients: Sequence[float]
    ) -> dict[str, Tensor]:
        """The values of the buffers that an update changes, by name."""
        names = {id(module): name for name, module in self.named_modules()}
        return {
            f"{names[id(owner)]}.{name}": value
            for (owner, name), value in buffers_after(updates, coefficients).items()
            if id(owner) in names
        }


def _add_up(gradients: dict[str, Tensor], parts: Mapping[str, Tensor | None]) -> None:
    for name, part in parts.items():
        if part is not None:
            gradients[name] = gradients[name].add_(part) if name in gradients else part


def _slope(
    update: ParameterUpdate,
    parameters: Mapping[str, nn.Parameter],
    gradients: Mapping[str, Tensor],
    like: Tensor,
) -> Tensor:
    """⟨∇_θ L, δ⟩ over the parameters that the update changes; a scalar."""
    parts = [
        (gradient * update.deltas[parameters[name]].to(gradient.device)).sum().double()
        for name, gradient in gradients.items()
        if parameters[name] in update.deltas
    ]
    return (
        torch.stack(parts).sum()
        if parts
        else torch.zeros((), dtype=torch.float64, device=like.device)
    )


def _without_kernels(body: nn.Module) -> AbstractContextManager[object]:
    """Run a compiled body uncompiled: its kernels only accept the module's own parameters."""
    # Checked first, because importing the rest of torch.compiler takes seconds.
    compiled = getattr(body, "_compiled_call_impl", None) is not None
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()
