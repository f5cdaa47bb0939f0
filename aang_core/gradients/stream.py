"""The stream engine: one task at a time, its gradient consumed while it is being made."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.signals import GradientStatistics
from aang_core.tasks import Batch, RowLosses, Task

Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Segment:
    """One task's rows in a step, in batches that are padded alike, and its loss's coefficient."""

    task: Task
    batches: Sequence[Batch]
    coefficient: float


class StreamEngine:
    """Exact signals at the cost of plain multitask training plus one pass over the dev rows.

    v is computed first; then each task runs forward and backward alone. As soon as backward has
    finished a parameter's gradient, its part of ⟨g_k, v⟩ and ‖g_k‖² is taken, the weighted
    gradient is added to the step's and the gradient is dropped: two gradient-sized buffers
    whatever the number of tasks, and the activations of one auxiliary task at a time. Losses are
    not scaled before backward, so a coefficient of zero still gives a task's statistics.

    Statistics run over the body's parameters alone. A parameter that is used twice, as word
    embeddings tied to a decoder are, counts once with its whole gradient.

    precision: what forward passes compute in; parameters, their gradients, the statistics and the
        dev head stay in the parameters' own precision.
    """

    def __init__(self, body: nn.Module, dev_head: DevHead, precision: Precision = "fp32") -> None:
        self.body = body
        self.dev_head = dev_head
        self.precision = precision

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """Leave Σ coefficient · ∇loss in ``.grad`` of every parameter of the body and the heads.

        dev: rows of the end task's dev set to measure against; None measures nothing, runs no dev
            head and returns None.
        """
        if dev is None:
            for segment in (*auxiliaries, end):
                loss = self._loss(segment, segment.task.head, self._features(segment.batches))
                (segment.coefficient * loss).backward()
            return None

        # The end task's forward pass comes first, because the dev head needs its features, and its
        # backward pass last, so that the auxiliary sum stands alone in the buffer when its norm is
        # taken. Only this task's activations are held meanwhile.
        features = self._features(end.batches)
        detached = [self._own_precision(f) for f in features]
        probe = self.dev_head.fit(end.task, detached, end.batches)
        sink = _GradientSink(self._dev_gradient(Segment(end.task, dev, 1.0), probe))
        with sink.attached(self._parameters(end, auxiliaries)):
            for segment in auxiliaries:
                sink.begin(segment.coefficient)
                features_k = self._features(segment.batches)
                self._loss(segment, segment.task.head, features_k).backward()
            auxiliary_norm = sink.body_norm()
            sink.begin(end.coefficient)
            self._loss(end, end.task.head, features).backward()
        sink.release()
        return _statistics(end, auxiliaries, sink, auxiliary_norm)

    def _features(self, batches: Sequence[Batch]) -> list[Tensor]:
        with self._autocast():
            return [self.body(**batch.inputs) for batch in batches]

    def _loss(self, segment: Segment, head: nn.Module, features: Sequence[Tensor]) -> Tensor:
        """Mean loss over all targets of the segment, through ``head``."""
        with self._autocast():
            parts = [
                segment.task.losses(head, f, batch.targets)
                for f, batch in zip(features, segment.batches, strict=True)
            ]
            return RowLosses.pool(parts).mean()

    def _dev_gradient(self, dev: Segment, probe: nn.Module) -> dict[nn.Parameter, Tensor]:
        """v = ∇_θ L_E^val([θ; φ*]); parameters that the loss does not reach are left out."""
        parameters = [p for p in self.body.parameters() if p.requires_grad]
        loss = self._loss(dev, probe, self._features(dev.batches))
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        return {p: g for p, g in zip(parameters, gradients, strict=True) if g is not None}

    def _autocast(self) -> torch.autocast:
        device = next(self.body.parameters()).device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.precision == "bf16")

    def _own_precision(self, features: Tensor) -> Tensor:
        return features.detach().to(next(self.body.parameters()).dtype)

    def _parameters(self, end: Segment, auxiliaries: Sequence[Segment]) -> dict[nn.Parameter, bool]:
        """Every trained parameter of the step, and whether it belongs to the body."""
        owned = {p: True for p in self.body.parameters() if p.requires_grad}
        for segment in (end, *auxiliaries):
            for p in segment.task.head.parameters():
                if p.requires_grad:
                    owned.setdefault(p, False)
        return owned


class _GradientSink:
    """Takes each parameter's gradient from backward, measures it, adds it up and drops it."""

    def __init__(self, dev_gradient: Mapping[nn.Parameter, Tensor]) -> None:
        self.dev_gradient = dev_gradient
        self.totals: dict[nn.Parameter, Tensor] = {}
        self.body: set[nn.Parameter] = set()
        self.dots: list[list[Tensor]] = []
        self.squares: list[list[Tensor]] = []
        self._coefficient = 0.0

    def begin(self, coefficient: float) -> None:
        """The gradients that follow belong to the next task, whose loss weighs ``coefficient``."""
        self._coefficient = coefficient
        self.dots.append([])
        self.squares.append([])

    @contextmanager
    def attached(self, parameters: Mapping[nn.Parameter, bool]) -> Iterator[None]:
        """Listen to ``parameters`` (mapped to whether they belong to the body)."""
        self.body = {p for p, in_body in parameters.items() if in_body}
        hooks = [p.register_post_accumulate_grad_hook(self._take) for p in parameters]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _take(self, parameter: Tensor) -> None:
        assert isinstance(parameter, nn.Parameter)
        gradient = parameter.grad
        assert gradient is not None
        parameter.grad = None
        if parameter in self.body:
            flat = gradient.reshape(-1)
            self.squares[-1].append(torch.dot(flat, flat))
            against = self.dev_gradient.get(parameter)
            if against is not None:
                self.dots[-1].append(torch.dot(flat, against.reshape(-1)))
        if parameter in self.totals:
            self.totals[parameter].add_(gradient, alpha=self._coefficient)
        else:
            self.totals[parameter] = gradient.mul_(self._coefficient)

    def body_norm(self) -> Tensor:
        """Norm of what has been added up so far over the body's parameters, a scalar."""
        return get_total_norm([g for p, g in self.totals.items() if p in self.body])

    def release(self) -> None:
        """Hand the sums over as the parameters' gradients."""
        for parameter, total in self.totals.items():
            parameter.grad = total


def _statistics(
    end: Segment, auxiliaries: Sequence[Segment], sink: _GradientSink, auxiliary_norm: Tensor
) -> GradientStatistics:
    device = next(iter(sink.body)).device
    dots = _sums(sink.dots, device)
    weights = torch.tensor([s.coefficient for s in auxiliaries], dtype=dots.dtype).to(device)
    share = weights.sum().clamp(min=torch.finfo(dots.dtype).tiny)
    return GradientStatistics(
        tasks=[*(s.task.name for s in auxiliaries), end.task.name],
        dots=dots,
        squares=_sums(sink.squares, device),
        auxiliary_dot=(weights * dots[:-1]).sum() / share,
        auxiliary_norm=auxiliary_norm.to(device) / share,
        dev_norm=get_total_norm(list(sink.dev_gradient.values())),
    )


def _sums(parts: Sequence[Sequence[Tensor]], device: torch.device) -> Tensor:
    """The sum of each list of scalars, ``[len(parts)]``; an empty list sums to zero."""
    return torch.stack(
        [torch.stack(list(p)).sum() if p else torch.zeros((), device=device) for p in parts]
    )
