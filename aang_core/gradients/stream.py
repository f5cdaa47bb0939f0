"""The stream engine: one task at a time, its gradient consumed while it is being made."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Rider, Segment, members_of
from aang_core.gradients.passes import Passes, Precision, joined
from aang_core.gradients.signals import GradientStatistics
from aang_core.gradients.sink import GradientSink
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import Batch, RowLosses, Task


class StreamEngine:
    """Exact signals at the cost of plain multitask training plus one pass over the dev rows.

    v is computed first; then each task runs forward and backward alone. As soon as backward has
    finished a parameter's gradient, its part of ⟨g_k, v⟩ and ‖g_k‖² is taken, the weighted
    gradient is added to the step's and the gradient is dropped: two gradient-sized buffers
    whatever the number of tasks, and the activations of one batch of one auxiliary task at a time.
    Losses are not scaled before backward, so a coefficient of zero still gives a task's statistics.

    Statistics run over the body's parameters alone. A parameter that is used twice, as word
    embeddings tied to a decoder are, counts once with its whole gradient.

    precision: what forward passes compute in; parameters, their gradients, the statistics and the
        dev head stay in the parameters' own precision.
    hold_end_task: keep the activations of the end task's rows from the forward pass that the dev
        head needs until their backward pass, which is the step's last. False makes that forward
        pass again instead, for rows that do not fit beside another task's.
    """

    splits_rows = True
    processes = ALONE

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        precision: Precision = "fp32",
        *,
        hold_end_task: bool = True,
        clip: TaskClip = UNCLIPPED,
    ) -> None:
        self.dev_head = dev_head
        self.clip = clip
        self.passes = Passes(body, precision)
        self.scale = self.passes.scale
        self.hold_end_task = hold_end_task
        self.losses: Sequence[Tensor] = []

    def limit_rows(self, rows: int) -> None:
        """See :meth:`aang_core.gradients.GradientEngine.limit_rows`."""
        self.hold_end_task = False

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """See :meth:`aang_core.gradients.GradientEngine.step`."""
        heads = [member.task.head for member in members_of((end, *auxiliaries))]
        if dev is None:
            sink = self._sink(heads, measures=False)
            with sink.attached():
                self.losses = [
                    loss for s in (*auxiliaries, end) for loss in self.accumulate(sink, s)
                ]
            sink.release()
            return None

        # The end task's forward pass comes first, because the dev head needs its features, and its
        # backward pass last, so that the auxiliary sum stands alone in the buffer when its norm is
        # taken. Only this task's activations are held meanwhile.
        hold = self.hold_end_task or bool(end.riders)
        with torch.set_grad_enabled(hold):
            features = [self.passes.features(batch) for batch in end.batches]
        probe = self.dev_head.fit(end.task, self.passes.dev_features(features), end.batches)
        v = self.dev_head.smoothed(body_gradient(self.passes, end.task, probe, dev))
        sink = self._sink(heads, v)
        held: list[Tensor] | None = features if hold else None
        del features
        with sink.attached():
            losses = [loss for s in auxiliaries for loss in self.accumulate(sink, s)]
            losses += self._riders(sink, end, held or [])
            auxiliary_square = sink.body_square()
            self.losses = [*losses, self._own(sink, end, held)]
        sink.release()
        measured = members_of((*auxiliaries, end))
        return sink.statistics(
            [member.task.name for member in measured],
            [member.coefficient for member in measured[:-1]],
            auxiliary_square,
        )

    def accumulate(self, sink: GradientSink, segment: Segment) -> list[Tensor]:
        """Run a segment's rows and give the sink the gradients of its tasks; their mean losses."""
        if not segment.riders:
            return [self._own(sink, segment)]
        features = [self.passes.features(batch) for batch in segment.batches]
        if not sink.measures:
            return self._together(sink, segment, features)
        losses = self._riders(sink, segment, features)
        return [*losses, self._own(sink, segment, features)]

    def _riders(
        self, sink: GradientSink, segment: Segment, features: Sequence[Tensor]
    ) -> list[Tensor]:
        """Each rider's gradient by itself; the passes through the body are kept for the next."""
        losses = []
        for rider in segment.riders:
            sink.begin(rider.coefficient)
            loss = rider_loss(self.passes, rider, features)
            loss.backward(retain_graph=True)
            losses.append(loss.detach())
        return losses

    def _together(
        self, sink: GradientSink, segment: Segment, features: Sequence[Tensor]
    ) -> list[Tensor]:
        """One backward pass for all tasks of a segment, whose gradients nobody asks for alone."""
        if segment.remember:
            self.dev_head.observe(self.passes.dev_features(features), segment.batches)
        own = [
            self.passes.losses(segment.task, segment.task.head, f, batch)
            for f, batch in zip(features, segment.batches, strict=True)
        ]
        losses = [rider_loss(self.passes, rider, features) for rider in segment.riders]
        losses.append(RowLosses.pool(own).mean())
        sink.begin(1.0)
        weighted = [m.coefficient * loss for m, loss in zip(segment.members, losses, strict=True)]
        torch.stack(weighted).sum().backward()
        return [loss.detach() for loss in losses]

    def _sink(
        self,
        heads: Sequence[nn.Module],
        v: Mapping[nn.Parameter, Tensor] | None = None,
        *,
        measures: bool = True,
    ) -> GradientSink:
        return GradientSink(
            self.passes.body, heads, v, measures=measures, scale=self.scale, clip=self.clip
        )

    def _own(
        self, sink: GradientSink, segment: Segment, held: list[Tensor] | None = None
    ) -> Tensor:
        """Run a segment's own task, batch by batch, and give the sink its gradient; its mean loss.

        held: features of the batches where they have been computed already; emptied on the way.
        """
        sink.begin(segment.coefficient)
        batches = segment.batches
        count: Tensor | None = None
        total: Tensor | None = None
        loss = torch.zeros(())
        for i, batch in enumerate(batches):
            features = self.passes.features(batch) if held is None else held.pop(0)
            if segment.remember:
                kept = self.passes.dev_features([features])
                self.dev_head.observe(kept, [batch], begins=i == 0)
            losses = self.passes.losses(segment.task, segment.task.head, features, batch)
            del features
            if len(batches) == 1:
                mean = losses.mean()
                mean.backward()
                return mean.detach()
            summed = losses.sums.sum()
            total = summed.detach() if total is None else total + summed.detach()
            # The mean is over the targets of all batches, and how many there are is known only
            # after the last forward pass: add up gradients of sums, divide as they are taken.
            count = losses.counts.sum() if count is None else count + losses.counts.sum()
            if i < len(batches) - 1:
                with sink.paused():
                    summed.backward()
            else:
                count = count.clamp(min=1)
                loss = total / count
                sink.divide_by(count)
                summed.backward()
        sink.take_left_over()
        return loss


def rider_loss(passes: Passes, rider: Rider, features: Sequence[Tensor]) -> Tensor:
    """Mean loss of a rider, a scalar, over the rows whose ``features`` the body has computed."""
    seen = joined(features)
    batch = Batch({}, rider.targets, len(seen))
    return passes.losses(rider.task, rider.task.head, seen, batch).mean()


def body_gradient(
    passes: Passes, task: Task, head: nn.Module, batches: Sequence[Batch]
) -> dict[nn.Parameter, Tensor]:
    """∇_θ of a task's loss through ``head``; parameters that it does not reach are left out.

    Over dev rows and through φ* it is v = ∇_θ L_E^val([θ; φ*]).
    """
    return task_gradient(passes, task, head, batches, passes.trained())


def task_gradient(
    passes: Passes,
    task: Task,
    head: nn.Module,
    batches: Sequence[Batch],
    parameters: Sequence[nn.Parameter],
) -> dict[nn.Parameter, Tensor]:
    """The gradient of a task's loss through ``head`` by those of ``parameters`` it reaches."""
    if len(batches) == 1:
        loss = passes.losses(task, head, passes.features(batches[0]), batches[0]).mean()
        gradients = gradients_of(loss, parameters)
        return {parameter: passes.scale.off(g) for parameter, g in gradients.items()}
    gradient: dict[nn.Parameter, Tensor] = {}
    counts = []
    for batch in batches:
        losses = passes.losses(task, head, passes.features(batch), batch)
        counts.append(losses.counts.sum())
        for parameter, part in gradients_of(losses.sums.sum(), parameters).items():
            gradient[parameter] = gradient[parameter] + part if parameter in gradient else part
    count = torch.stack(counts).sum().clamp(min=1)
    return {parameter: passes.scale.off(total / count) for parameter, total in gradient.items()}


def gradients_of(loss: Tensor, parameters: Sequence[nn.Parameter]) -> dict[nn.Parameter, Tensor]:
    """The gradient of ``loss`` by parameter; those that it does not reach are left out."""
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return {p: g for p, g in zip(parameters, gradients, strict=True) if g is not None}
