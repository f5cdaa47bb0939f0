"""What weighters try outside the run: trials of tasks, and the dev set (αVIL, section 3)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call

from aang_core.errors import AangError, WeighterError
from aang_core.tasks.processes import Processes
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.tasks.workbench import DevLossAlong, Update, require_finite_score
from aang_core.training.model_state import KeptBuffers, Place, as_numbers, buffers_of
from aang_core.training.rows import Draws
from aang_core.training.updates import ParameterUpdate, moved, own_updates

DEV = "dev"
"""Name of the row order of the dev set, beside those of tasks."""


class Snapshot:
    """A copy of parameters and buffers, to restore or to compare with.

    Args:
        parameters: the parameters.
        modules: the modules whose buffers are copied.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], modules: Iterable[nn.Module]) -> None:
        self._values = {p: p.detach().clone() for p in parameters}
        self._buffers = KeptBuffers(buffers_of(modules))

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the value of every parameter and buffer."""
        for parameter, value in self._values.items():
            parameter.copy_(value)
        self._buffers.restore()

    def difference(self, tasks: tuple[str, ...], *, offload: bool) -> ParameterUpdate:
        """What has changed since the copy was made.

        Args:
            tasks: the tasks that were trained.
            offload: whether to keep the changes on the CPU.
        """
        parameters = {p: (p.detach(), value) for p, value in self._values.items()}
        buffers = self._buffers.compared()
        flags = [(a != b).any() for a, b in (*parameters.values(), *buffers.values())]
        # The only transfer from the device, unless the changes are kept on the CPU. They are
        # computed afterwards and one by one, so that kept changes take no room on the device.
        changed = iter(torch.stack([flag.to(flags[0].device) for flag in flags]).tolist())
        return ParameterUpdate(
            tasks,
            {p: _kept(a - b, offload) for p, (a, b) in parameters.items() if next(changed)},
            {place: _kept(a - b, offload) for place, (a, b) in buffers.items() if next(changed)},
        )


class DevSet(nn.Module):
    """The dev rows of a run, as weighters use them; a module of body and end-task head.

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
        super().__init__()
        self.body = body
        self.head = end_task.head
        self._task = end_task
        self._draws = draws
        self._rows = rows
        self._score = score
        self._processes = processes

    def forward(self, batch: Batch) -> RowLosses:
        """The losses of a batch, one per row."""
        return self._task.losses(self.head, self.body(**batch.inputs), batch.targets)

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

    def loss(
        self, updates: Sequence[Update], coefficients: Sequence[float], batches: int | None
    ) -> DevLossAlong:
        """The mean loss over all targets at θ + Σ α_t δ_t, and its gradient with respect to α.

        The derivative with respect to α_t is ⟨∇_θ L, δ_t⟩, and ∇_θ L is summed over the batches, so
        one backward pass per batch suffices and memory is that of one batch. Dropout is off. θ are
        the parameters; buffers have the values that applying the updates would leave.

        Args:
            updates: the δ_t.
            coefficients: the α_t, one for each update.
            batches: number of dev batches to take next; None for the whole dev set.
        """
        tried, processes = own_updates(updates, coefficients), self._processes
        drawn: Iterable[Batch] = self._draws.every_row(DEV, self._rows)
        if batches is not None:
            drawn = [b for _ in range(batches) for b in self._draws.rows(DEV, self._rows)]
        own = dict(self.named_parameters())
        reached = [name for name, p in own.items() if any(p in u.deltas for u in tried)]
        values = {
            name: moved(parameter.detach(), parameter, tried, coefficients)
            for name, parameter in own.items()
        }
        names = {id(module): name for name, module in self.named_modules()}
        for (owner, name), value in buffers_after(tried, coefficients).items():
            if id(owner) in names:
                values[f"{names[id(owner)]}.{name}"] = value
        places = [values[name].requires_grad_() for name in reached]
        gradients: dict[str, Tensor] = {}
        like = next(self.body.parameters())
        total = torch.zeros(2, dtype=torch.float64, device=like.device)
        was_training = self.training
        self.eval()
        with _without_kernels(self.body):
            for number, batch in enumerate(drawn):
                if number % processes.size != processes.rank:
                    continue
                losses: RowLosses = functional_call(self, values, (batch,))
                summed = losses.sums.sum()
                total += torch.stack([summed.detach().double(), losses.counts.sum().double()])
                if summed.requires_grad:
                    parts = torch.autograd.grad(summed, places, allow_unused=True)
                    _add_up(gradients, dict(zip(reached, parts, strict=True)))
        self.train(was_training)
        slopes = [_slope(update, own, gradients, like) for update in tried]
        (numbers,) = processes.sum([torch.cat([total, torch.stack(slopes)] if slopes else [total])])
        loss, count, *by_alpha = numbers.tolist()
        count = max(count, 1.0)
        loss, *gradient = processes.agree([loss / count, *(slope / count for slope in by_alpha)])
        return DevLossAlong(loss, gradient)


@torch.no_grad()
def apply_updates(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> None:
    """θ ← θ + Σ α_t δ_t, summed in the order given; buffers as in `buffers_after`."""
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        parameter.copy_(moved(parameter.detach(), parameter, updates, coefficients))
    for (owner, name), value in buffers_after(updates, coefficients).items():
        getattr(owner, name).copy_(value)


def buffers_after(
    updates: Sequence[ParameterUpdate], coefficients: Sequence[float]
) -> dict[Place, Tensor]:
    """The values of the buffers that updates change, after them: b + Σ a_t δ_t / max(1, Σ a_t).

    Here a_t = max(α_t, 0). Parameters move by Σ α_t δ_t. That would leave the range of values
    that training has seen, and a running variance may become negative. A mean of the old value and
    those after each update stays in this range. With a single update and α = 1 it is the value
    after this update.

    Args:
        updates: the δ_t.
        coefficients: the α_t.
    """
    shares = [max(coefficient, 0.0) for coefficient in coefficients]
    total = max(sum(shares), 1.0)
    moved: dict[Place, Tensor] = {}
    for place in dict.fromkeys(place for update in updates for place in update.buffers):
        buffer = getattr(*place).detach()
        value = as_numbers(buffer)
        for update, share in zip(updates, shares, strict=True):
            if place in update.buffers:
                value = value + share / total * update.buffers[place].to(value.device)
        whole = value.dtype != buffer.dtype
        moved[place] = (value.round() if whole else value).to(buffer.dtype)
    return moved


def _kept(change: Tensor, offload: bool) -> Tensor:
    return change.cpu() if offload else change


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
