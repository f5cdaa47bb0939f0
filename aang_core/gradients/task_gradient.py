"""The gradient of one task's mean loss, over as many batches and processes as share its rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.engine import Rider
from aang_core.gradients.passes import Passes, joined
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch, Task

Gradients = dict[nn.Parameter, Tensor]
"""By parameter; those that a loss does not reach are left out."""


def backward_over(
    passes: Passes,
    task: Task,
    head: nn.Module,
    batches: Sequence[Batch],
    features: Iterable[Tensor],
    *,
    inputs: Sequence[nn.Parameter] | None = None,
    before_last: Callable[[Tensor], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Add the gradient of a task's summed losses over all batches to ``.grad``.

    The mean is over the targets of all batches, and how many there are is known only after the last
    forward pass; so gradients of sums are added up, and whoever calls divides them.

    Args:
        passes: Through the body.
        task: Whose losses.
        head: The task's own, or one of the same shape.
        batches: One forward and backward pass each.
        features: Of the batches, in order, each asked for when its batch has its turn.
        inputs: The parameters whose gradient is wanted; None for all that have one.
        before_last: Called before the last backward pass with the number of targets.

    Returns:
        The sum of the losses and the number of targets, one at least; scalars.
    """
    like = next(passes.body.parameters())
    total = count = torch.zeros((), device=like.device)
    for i, (batch, seen) in enumerate(zip(batches, features, strict=True)):
        losses = passes.losses(task, head, seen, batch)
        del seen
        summed = losses.sums.sum()
        total = total + summed.detach()
        count = count + losses.counts.sum()
        if before_last is not None and i == len(batches) - 1:
            before_last(count.clamp(min=1))
        torch.autograd.backward(summed, inputs=inputs)
    return total, count.clamp(min=1)


def mean_gradient(
    passes: Passes,
    task: Task,
    head: nn.Module,
    batches: Sequence[Batch],
    parameters: Sequence[nn.Parameter],
    *,
    features: Iterable[Tensor] | None = None,
    processes: Processes = ALONE,
) -> tuple[Gradients, Tensor]:
    """The true gradient of a task's mean loss through ``head``, and that loss.

    Args:
        passes: Through the body.
        task: Whose loss.
        head: The task's own, or one of the same shape.
        batches: Those of this process.
        parameters: Whose gradient; what lies in their ``.grad`` is dropped.
        features: Of the batches, where they have been computed.
        processes: The mean is over the batches of all of them.
    """
    for parameter in parameters:
        parameter.grad = None
    seen = map(passes.features, batches) if features is None else features
    if processes.size == 1 and len(batches) == 1:
        loss = passes.losses(task, head, next(iter(seen)), batches[0]).mean()
        torch.autograd.backward(loss, inputs=parameters)
        return {p: passes.scale.off(g) for p, g in _taken(parameters).items()}, loss.detach()
    total, count = backward_over(passes, task, head, batches, seen, inputs=parameters)
    gradients = _taken(parameters)
    if processes.size > 1:
        (numbers,) = processes.sum([torch.stack([total.double(), count.double()])])
        total, count = numbers
        gradients = summed_over(processes, gradients, parameters)
    true = {p: passes.scale.off(g.div_(count.to(g.dtype))) for p, g in gradients.items()}
    return true, total / count


def body_gradient(
    passes: Passes, task: Task, head: nn.Module, batches: Sequence[Batch]
) -> Gradients:
    """∇_θ of a task's mean loss through ``head``.

    Over dev rows and through φ* it is v = ∇_θ L_E^val([θ; φ*]).
    """
    return mean_gradient(passes, task, head, batches, passes.trained())[0]


def rider_loss(passes: Passes, rider: Rider, features: Sequence[Tensor]) -> Tensor:
    """Mean loss of a rider, a scalar, over the rows whose ``features`` the body has computed."""
    seen = joined(features)
    batch = Batch({}, rider.targets, len(seen))
    return passes.losses(rider.task, rider.task.head, seen, batch).mean()


def rider_gradient(
    passes: Passes, rider: Rider, features: Sequence[Tensor], parameters: Sequence[nn.Parameter]
) -> tuple[Gradients, Tensor]:
    """The true gradient of a rider's mean loss, and that loss; the features keep their graph."""
    loss = rider_loss(passes, rider, features)
    parts = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    found = zip(parameters, parts, strict=True)
    return {p: passes.scale.off(g) for p, g in found if g is not None}, loss.detach()


def summed_over(
    processes: Processes,
    gradients: Mapping[nn.Parameter, Tensor],
    parameters: Sequence[nn.Parameter],
) -> Gradients:
    """Gradients summed over the processes; parameters that none of them has are left out."""
    device = parameters[0].device
    reached = torch.tensor([p in gradients for p in parameters], dtype=torch.int32)
    (reached,) = processes.sum([reached.to(device)])
    kept = [p for p, n in zip(parameters, reached.tolist(), strict=True) if n]
    parts = [gradients[p] if p in gradients else torch.zeros_like(p) for p in kept]
    return dict(zip(kept, processes.sum(parts), strict=True))


def _taken(parameters: Sequence[nn.Parameter]) -> Gradients:
    """What lies in ``.grad``, which is empty afterwards."""
    taken = {p: p.grad for p in parameters if p.grad is not None}
    for parameter in taken:
        parameter.grad = None
    return taken
