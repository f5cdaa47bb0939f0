"""The gradient of one task's mean loss over all its batches, in one or several processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.engine import Rider
from aang_core.gradients.passes import Passes, joined
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch, Task

Gradients = dict[nn.Parameter, Tensor]
"""Gradients by parameter, without parameters that the loss does not depend on."""


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

    The mean is over the targets of all batches, whose number is known only after the last forward
    pass. So gradients of sums are accumulated, and the caller divides them.

    Args:
        passes: passes through the body.
        task: the task.
        head: the task's own head, or one of the same shape.
        batches: its rows; each batch takes one forward and one backward pass.
        features: of the batches, in order, each requested just before it is used.
        inputs: the parameters to differentiate by; None for all.
        before_last: called with the number of targets before the last backward pass.

    Returns:
        The sum of the losses and the number of targets; scalars.
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
    return total, count


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
    """The gradient of a task's mean loss through ``head``.

    Args:
        passes: passes through the body.
        task: the task.
        head: the task's own head, or one of the same shape.
        batches: its rows in this process.
        parameters: the parameters to differentiate by; their ``.grad`` is cleared.
        features: of the batches, if they are computed already.
        processes: the mean is over the batches of all these processes.

    Returns:
        The gradient without loss scale, and the mean loss, a scalar.
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
    # Only here: a process without rows of the task adds nothing to the number of targets.
    count = count.clamp(min=1)
    true = {p: passes.scale.off(g.div_(count.to(g.dtype))) for p, g in gradients.items()}
    return true, total / count


def body_gradient(
    passes: Passes, task: Task, head: nn.Module, batches: Sequence[Batch]
) -> Gradients:
    """∇_θ of a task's mean loss through ``head``.

    With dev rows and φ* as head, this is v = ∇_θ L_E^val([θ; φ*]).
    """
    return mean_gradient(passes, task, head, batches, passes.trained())[0]


def rider_loss(passes: Passes, rider: Rider, features: Sequence[Tensor]) -> Tensor:
    """Mean loss of a rider, a scalar, given the features of each batch of its rows."""
    seen = joined(features)
    batch = Batch({}, rider.targets, len(seen))
    return passes.losses(rider.task, rider.task.head, seen, batch).mean()


def rider_gradient(
    passes: Passes, rider: Rider, features: Sequence[Tensor], parameters: Sequence[nn.Parameter]
) -> tuple[Gradients, Tensor]:
    """The gradient of a rider's mean loss without loss scale, and that loss; keeps the graph."""
    loss = rider_loss(passes, rider, features)
    parts = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    found = zip(parameters, parts, strict=True)
    return {p: passes.scale.off(g) for p, g in found if g is not None}, loss.detach()


def summed_over(
    processes: Processes,
    gradients: Mapping[nn.Parameter, Tensor],
    parameters: Sequence[nn.Parameter],
) -> Gradients:
    """Sum gradients over processes.

    Args:
        processes: the processes.
        gradients: those of this process.
        parameters: all parameters that any process may have a gradient of.

    Returns:
        The sums, without parameters that no process has a gradient of.
    """
    device = parameters[0].device
    reached = torch.tensor([p in gradients for p in parameters], dtype=torch.int32)
    (reached,) = processes.sum([reached.to(device)])
    kept = [p for p, n in zip(parameters, reached.tolist(), strict=True) if n]
    parts = [gradients[p] if p in gradients else torch.zeros_like(p) for p in kept]
    return dict(zip(kept, processes.sum(parts), strict=True))


def _taken(parameters: Sequence[nn.Parameter]) -> Gradients:
    """Take the gradients out of ``.grad``."""
    taken = {p: p.grad for p in parameters if p.grad is not None}
    for parameter in taken:
        parameter.grad = None
    return taken
