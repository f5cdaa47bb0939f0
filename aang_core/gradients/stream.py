"""The stream engine: one task at a time, its gradient consumed while it is being made."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Segment, members_of
from aang_core.gradients.ledger import Ledger
from aang_core.gradients.passes import Passes, Precision
from aang_core.gradients.signals import GradientStatistics
from aang_core.gradients.sink import GradientSink, trained
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip
from aang_core.gradients.task_gradient import backward_over, body_gradient, rider_loss
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import Batch, RowLosses


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
        measured = members_of((*auxiliaries, end))
        ledger = self.ledger(end=None if dev is None else len(measured) - 1)
        sink = self.sink(ledger, [end, *auxiliaries], measures=dev is not None)
        if dev is None:
            with sink.attached():
                self.losses = [
                    loss for s in (*auxiliaries, end) for loss in self.accumulate(sink, s)
                ]
            sink.settle()
            ledger.release()
            return None

        # The end task's forward pass comes first, because the dev head needs its features, and its
        # backward pass last, so that the auxiliary sum stands alone in the buffer when its norm is
        # taken. Only this task's activations are held meanwhile.
        hold = self.hold_end_task or bool(end.riders)
        with torch.set_grad_enabled(hold):
            features = [self.passes.features(batch) for batch in end.batches]
        probe = self.dev_head.fit(end.task, self.passes.dev_features(features), end.batches)
        v = self.dev_head.smoothed(body_gradient(self.passes, end.task, probe, dev))
        for parameter, gradient in v.items():
            ledger.enter_v(parameter, gradient)
        held: list[Tensor] | None = features if hold else None
        del features
        with sink.attached():
            losses = [loss for s in auxiliaries for loss in self.accumulate(sink, s)]
            losses += self._riders(sink, end, held or [])
            self.losses = [*losses, self._own(sink, end, held)]
        sink.settle()
        ledger.release()
        return ledger.statistics([member.task.name for member in measured], self.clip)

    def ledger(self, *, end: int | None) -> Ledger:
        """An empty ledger for the body. end: the end task's number, where its norm is wanted."""
        device = next(self.passes.body.parameters()).device
        return Ledger(self.passes.trained(), device, end=end)

    def sink(self, ledger: Ledger, segments: Sequence[Segment], *, measures: bool) -> GradientSink:
        """What enters the gradients of the segments' tasks in ``ledger``."""
        heads = [member.task.head for member in members_of(segments)]
        return GradientSink(
            ledger,
            trained(self.passes.body, *heads),
            measures=measures,
            scale=self.scale,
            clip=self.clip,
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

    def _own(
        self, sink: GradientSink, segment: Segment, held: list[Tensor] | None = None
    ) -> Tensor:
        """Run a segment's own task, batch by batch, and give the sink its gradient; its mean loss.

        held: features of the batches where they have been computed already; emptied on the way.
        """
        batches, task = segment.batches, segment.task
        features = self._features(segment, held)
        sink.begin(segment.coefficient, in_parts=len(batches) > 1)
        if len(batches) == 1:
            mean = self.passes.losses(task, task.head, next(features), batches[0]).mean()
            mean.backward()
            return mean.detach()
        total, count = backward_over(
            *(self.passes, task, task.head, batches, features), before_last=sink.last_part
        )
        sink.take_left_over()
        return total / count

    def _features(self, segment: Segment, held: list[Tensor] | None) -> Iterator[Tensor]:
        """What the body makes of each batch, when its turn comes; the dev head sees it too."""
        for i, batch in enumerate(segment.batches):
            features = self.passes.features(batch) if held is None else held.pop(0)
            if segment.remember:
                kept = self.passes.dev_features([features])
                self.dev_head.observe(kept, [batch], begins=i == 0)
            yield features
