"""Passes through the body and a head, and the gradient of one task, for all engines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core.errors import AangError
from aang_core.gradients.segments import Rider
from aang_core.tasks.task import Batch, RowLosses, Task

Precision = Literal["fp32", "bf16", "fp16"]

Gradients = dict[nn.Parameter, Tensor]
"""Gradients by parameter, without parameters that the loss does not depend on."""

_TYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


FIRST = 2.0**16
"""The scale at the start of training."""
_GROWS_AFTER = 2000


class LossScale:
    """The factor on losses before a backward pass that keeps small gradients from vanishing.

    Micikevicius et al., Mixed Precision Training, 2018.

    The smallest positive number in fp16 is 6e-8; gradients of activations are often smaller. A
    power of two scales them without rounding. Gradients of parameters are divided by it as soon as
    they are computed, so signals, clipping and steps see the true ones. A step whose gradients
    overflow is repeated at half the scale on the same rows; after 2,000 good steps the scale
    doubles (section 3.2). torch's ``GradScaler`` skips such a step instead of repeating it.

    Args:
        moves: False fixes the scale at one.
    """

    def __init__(self, *, moves: bool) -> None:
        self.value = FIRST if moves else 1.0
        self.moves = moves
        self._good = 0

    def on(self, losses: RowLosses) -> RowLosses:
        """The same losses with a scaled gradient."""
        if self.value == 1.0:
            return losses
        # fp16 may not be able to represent the scale itself.
        sums = losses.sums.to(torch.promote_types(losses.sums.dtype, torch.float32))
        scaled = _ScaledGradient.apply(sums, self.value)  # type: ignore[no-untyped-call]
        return RowLosses(scaled, losses.counts)

    def off(self, gradient: Tensor) -> Tensor:
        """The true gradient, given the gradient of scaled losses."""
        return gradient if self.value == 1.0 else gradient / self.value

    def good(self) -> None:
        """Record a step with finite gradients."""
        if not self.moves:
            return
        self._good += 1
        if self._good == _GROWS_AFTER:
            self.value, self._good = 2 * self.value, 0

    def halve(self) -> bool:
        """Halve the scale after gradients that were not finite.

        Returns:
            Whether repeating the step may help; False if the scale cannot get smaller.
        """
        self._good = 0
        if not self.moves or self.value == 1.0:
            return False
        self.value /= 2
        return True

    def state_dict(self) -> dict[str, float]:
        """The scale, and the number of good steps at it."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.value, self._good = state["value"], state["good"]


class _ScaledGradient(torch.autograd.Function):
    """The identity, with its gradient multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.factor, None


class Passes:
    """Forward passes in a given precision.

    Args:
        body: the module that all tasks share.
        precision: of forward passes; parameters, their gradients and the dev head stay in the
            parameters' own precision.

    Attributes:
        scale: scales the losses; each of their gradients goes through ``scale.off``.
    """

    def __init__(self, body: nn.Module, precision: Precision) -> None:
        self.body = body
        self.scale = LossScale(moves=precision == "fp16")
        self._type = _TYPES[precision]

    def features(self, batch: Batch) -> Tensor:
        """The body's features of a batch."""
        with self.autocast():
            features: Tensor = self.body(**batch.inputs)
            return features

    def losses(self, task: Task, head: nn.Module, features: Tensor, batch: Batch) -> RowLosses:
        """Losses of a batch's rows through ``head``, with a scaled gradient."""
        with self.autocast():
            return self.scale.on(task.losses(head, features, batch.targets))

    def dev_features(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Features to fit the dev head on: detached, in the parameters' precision.

        Raises:
            AangError: the body returns something other than a tensor.
        """
        dtype = next(self.body.parameters()).dtype
        for found in features:
            if not isinstance(found, Tensor):
                raise AangError(
                    f"the body returned a {type(found).__name__}, and signals against the dev "
                    "gradient need one tensor of features with a row for each row of the batch; "
                    "return that, or take a weighter without such signals, such as static"
                )
        return [f.detach().to(dtype) for f in features]

    def trained(self) -> list[nn.Parameter]:
        """θ: the trained parameters of the body."""
        return [p for p in self.body.parameters() if p.requires_grad]

    def autocast(self) -> torch.autocast:
        """The autocast context of forward passes."""
        device = next(self.body.parameters()).device.type
        return torch.autocast(device, self._type, enabled=self._type is not None)


def joined(features: Sequence[Tensor]) -> Tensor:
    """Concatenate the features of several batches.

    Args:
        features: ``[B, T, ...]`` each; T may differ between them, or be missing.

    Returns:
        ``[sum of B, longest T, ...]``, padded with zeros.
    """
    if len(features) == 1:
        return features[0]
    if len({part.shape[1:] for part in features}) == 1:
        return torch.cat(list(features))
    longest = max(part.shape[1] for part in features)
    widths = [(0, 0) * (part.dim() - 2) + (0, longest - part.shape[1]) for part in features]
    return torch.cat(
        [functional.pad(part, width) for part, width in zip(features, widths, strict=True)]
    )


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
        inputs: the parameters to differentiate with respect to; None for all.
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
) -> tuple[Gradients, Tensor]:
    """The gradient of a task's mean loss through ``head``.

    Args:
        passes: passes through the body.
        task: the task.
        head: the task's own head, or one of the same shape.
        batches: its rows.
        parameters: the parameters to differentiate by; their ``.grad`` is cleared.

    Returns:
        The gradient without loss scale, and the mean loss, a scalar.
    """
    taken(parameters)
    features = map(passes.features, batches)
    if len(batches) == 1:
        loss = passes.losses(task, head, next(features), batches[0]).mean()
        torch.autograd.backward(loss, inputs=parameters)
        return {p: passes.scale.off(g) for p, g in taken(parameters).items()}, loss.detach()
    total, count = backward_over(passes, task, head, batches, features, inputs=parameters)
    count = count.clamp(min=1)
    found = taken(parameters).items()
    return {p: passes.scale.off(g.div_(count.to(g.dtype))) for p, g in found}, total / count


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


def taken(parameters: Sequence[nn.Parameter]) -> Gradients:
    """Take the gradients out of ``.grad``."""
    taken = {p: p.grad for p in parameters if p.grad is not None}
    for parameter in taken:
        parameter.grad = None
    return taken


def trained(*modules: nn.Module) -> list[nn.Parameter]:
    """The trained parameters of modules, each once, in the same order in every process."""
    return list(dict.fromkeys(p for m in modules for p in m.parameters() if p.requires_grad))
