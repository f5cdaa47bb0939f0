"""What trials change, and the dev loss along their updates (αVIL, section 3, Algorithm 1)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from aang_core.tasks import Batch, RowLosses, Task


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
    coefficients: Iterable[float | Tensor],
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

    def forward(self, batches: Sequence[Batch]) -> Tensor:
        """Mean loss over all targets of the batches."""
        parts = [
            self._task.losses(self.head, self.body(**batch.inputs), batch.targets)
            for batch in batches
        ]
        return RowLosses.pool(parts).mean()

    def along(
        self,
        updates: Sequence[ParameterUpdate],
        coefficients: Sequence[float],
        batches: Sequence[Batch],
    ) -> tuple[float, list[float]]:
        """The loss at θ + Σ α_t δ_t and its derivative by each α_t, by one backward pass.

        Dropout is off: it is an evaluation.
        """
        like = next(self.body.parameters())
        alpha = torch.tensor(coefficients, dtype=like.dtype, device=like.device)
        alpha.requires_grad_()
        moved = {
            name: _moved(parameter.detach(), parameter, updates, list(alpha))
            for name, parameter in self.named_parameters()
        }
        was_training = self.training
        self.eval()
        with _without_kernels(self.body):
            loss = functional_call(self, moved, (batches,))
        self.train(was_training)
        if not loss.requires_grad:  # no update touches what the loss reads
            return loss.item(), [0.0] * len(coefficients)
        (gradient,) = torch.autograd.grad(loss, alpha)
        return loss.item(), gradient.tolist()


def _without_kernels(body: nn.Module) -> AbstractContextManager[object]:
    """Kernels that ``Module.compile`` has made take no other parameters than the module's own."""
    # Asked first, because torch.compiler takes seconds to import its better half.
    compiled = getattr(body, "_compiled_call_impl", None) is not None
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()
