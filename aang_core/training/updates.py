"""What trials change, and the dev loss along their updates (αVIL, section 3, Algorithm 1)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch, RowLosses, Task


@dataclass(frozen=True)
class ParameterUpdate:
    """δ of a trial: what training alone changed, by parameter.

    tasks: the tasks that were trained.
    """

    tasks: tuple[str, ...]
    deltas: Mapping[nn.Parameter, Tensor]


class Keepsake:
    """The values of parameters, to be put back."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._values = {p: p.detach().clone() for p in parameters}

    @torch.no_grad()
    def put_back(self) -> None:
        """Give every parameter the value that it had."""
        for parameter, value in self._values.items():
            parameter.copy_(value)

    def difference(self, tasks: tuple[str, ...], *, offload: bool) -> ParameterUpdate:
        """What has changed since; on the CPU if ``offload``. Unchanged parameters are left out."""
        deltas = {}
        for parameter, value in self._values.items():
            delta = parameter.detach() - value
            if bool(delta.any()):
                deltas[parameter] = delta.cpu() if offload else delta
        return ParameterUpdate(tasks, deltas)


@torch.no_grad()
def apply_updates(updates: Sequence[ParameterUpdate], coefficients: Sequence[float]) -> None:
    """θ ← θ + Σ α_t δ_t, added up in the order given."""
    for parameter in dict.fromkeys(p for update in updates for p in update.deltas):
        parameter.copy_(_moved(parameter.detach(), parameter, updates, coefficients))


def _moved(
    value: Tensor,
    parameter: nn.Parameter,
    updates: Sequence[ParameterUpdate],
    coefficients: Iterable[float],
) -> Tensor:
    for update, coefficient in zip(updates, coefficients, strict=True):
        if parameter in update.deltas:
            value = value + coefficient * update.deltas[parameter].to(value.device)
    return value


class DevLoss(nn.Module):
    """The end task's loss over dev rows, as a function of body and head."""

    def __init__(self, body: nn.Module, end_task: Task) -> None:
        super().__init__()
        self.body = body
        self.head = end_task.head
        self._task = end_task

    def forward(self, batch: Batch) -> RowLosses:
        """The losses of a batch."""
        return self._task.losses(self.head, self.body(**batch.inputs), batch.targets)

    def along(
        self,
        updates: Sequence[ParameterUpdate],
        coefficients: Sequence[float],
        batches: Iterable[Batch],
        processes: Processes = ALONE,
    ) -> tuple[float, list[float]]:
        """The mean loss over all targets of the batches at θ + Σ α_t δ_t, and its gradient by α.

        One backward pass a batch, so that memory is that of one batch: the derivative by α_t is
        ⟨∇_θ L, δ_t⟩, and ∇_θ L is added up over the batches. Several processes share them. Dropout
        is off: it is an evaluation.
        """
        own = dict(self.named_parameters())
        reached = [name for name, p in own.items() if any(p in u.deltas for u in updates)]
        moved = {
            name: _moved(parameter.detach(), parameter, updates, coefficients)
            for name, parameter in own.items()
        }
        places = [moved[name].requires_grad_() for name in reached]
        gradients: dict[str, Tensor] = {}
        like = next(self.body.parameters())
        total = torch.zeros(2, dtype=torch.float64, device=like.device)
        was_training = self.training
        self.eval()
        with _without_kernels(self.body):
            for number, batch in enumerate(batches):
                if number % processes.size != processes.rank:
                    continue
                losses: RowLosses = functional_call(self, moved, (batch,))
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
    """⟨∇_θ L, δ⟩ over the parameters that the update changes, a scalar."""
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
    """Kernels that ``Module.compile`` has made take no other parameters than the module's own."""
    # Asked first, because torch.compiler takes seconds to import its better half.
    compiled = getattr(body, "_compiled_call_impl", None) is not None
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()
