"""The stream engine: one task at a time, each gradient consumed as backward computes it."""

import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Segment, largest_batch, members_of, share_passes
from aang_core.gradients.ledger import (
    UNCLIPPED,
    GradientSink,
    GradientStatistics,
    Ledger,
    TaskClip,
    trained,
)
from aang_core.gradients.packing import CannotPackError, Pack, batch_norm_of
from aang_core.gradients.passes import Passes, Precision
from aang_core.gradients.task_gradient import backward_over, body_gradient, rider_loss
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import Batch, RowLosses


class StreamEngine:
    """Exact signals at the cost of plain multitask training plus one pass over the dev rows.

    v is computed first; then each task runs forward and backward alone. As soon as backward has
    computed a parameter's gradient, its part of ⟨g_k, v⟩ and ‖g_k‖² is measured, its weighted value
    is added to the step's gradient, and it is dropped. Memory is two gradient-sized buffers,
    whatever the number of tasks, and the activations of one batch of one auxiliary task. Losses are
    not multiplied by their coefficients before backward, so a task with coefficient zero still has
    statistics. In a step that measures nothing, auxiliary tasks of few rows share a pass.

    Statistics cover only the body's parameters. A parameter that is used twice, like word
    embeddings tied to a decoder, counts once with its whole gradient.

    Args:
        body: the module that all tasks share.
        dev_head: the head that the dev gradient goes through.
        precision: of forward passes; parameters, their gradients, the statistics and the dev head
            stay in the parameters' own precision.
        hold_end_task: whether to keep the activations of the end task's rows from the forward
            pass that the dev head needs until their backward pass, the last of the step. False
            repeats that forward pass, for rows that do not fit into memory beside another task's.
        clip: clips each task's body gradient.
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
        self._shares_passes = batch_norm_of(body) is None

    def limit_rows(self, rows: int) -> None:
        """See `GradientEngine.limit_rows`."""
        self.hold_end_task = False

    def step(
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """See `GradientEngine.step`."""
        names = [member.task.name for member in members_of((*auxiliaries, end))]
        measures = norms or dev is not None
        ledger = self.ledger(end=len(names) - 1 if measures else None)
        sink = self.sink(ledger, [end, *auxiliaries], measures=measures)
        most_rows = largest_batch((*auxiliaries, end))
        if dev is None:
            with sink.attached():
                losses = self.accumulate(sink, auxiliaries, most_rows)
                self.losses = [*losses, *self._run(sink, end)]
            sink.settle()
            ledger.release()
            return ledger.statistics(names, self.clip) if measures else None

        # The end task's forward pass comes first, because the dev head needs its features. Its
        # backward pass comes last, so that the buffer holds only the auxiliary sum when the norm of
        # that is computed. Only this task's activations are kept in between.
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
            losses = self.accumulate(sink, auxiliaries, most_rows)
            losses += self._riders(sink, end, held or [])
            self.losses = [*losses, self._own(sink, end, held)]
        sink.settle()
        ledger.release()
        return ledger.statistics(names, self.clip)

    def ledger(self, *, end: int | None) -> Ledger:
        """An empty ledger for the body.

        Args:
            end: number of the end task; None for a step that measures nothing.
        """
        device = next(self.passes.body.parameters()).device
        return Ledger(self.passes.trained(), device, end=end)

    def sink(self, ledger: Ledger, segments: Sequence[Segment], *, measures: bool) -> GradientSink:
        """A sink that enters the gradients of the segments' tasks in ``ledger``."""
        heads = [member.task.head for member in members_of(segments)]
        return GradientSink(
            ledger,
            trained(self.passes.body, *heads),
            measures=measures,
            scale=self.scale,
            clip=self.clip,
        )

    def accumulate(
        self, sink: GradientSink, segments: Sequence[Segment], most_rows: int
    ) -> list[Tensor]:
        """Run the rows of auxiliary segments and pass the gradients of their tasks to the sink.

        If the sink measures nothing, segments of few rows share a pass: one over two rows takes
        almost as long as one over ten. Batch normalisation would mix the rows of such a pass, so
        with it every segment has its own.

        Args:
            sink: takes the gradients.
            segments: the segments.
            most_rows: most rows in a pass that several segments share.

        Returns:
            The mean loss of each task, in the order of `members_of`.
        """
        if sink.measures or not self._shares_passes:
            return [loss for segment in segments for loss in self._run(sink, segment)]
        losses: dict[int, list[Tensor]] = {}
        for group in share_passes(segments, most_rows):
            of_group = self._run_group(sink, [segments[i] for i in group])
            losses |= zip(group, of_group, strict=True)
        return [loss for i in range(len(segments)) for loss in losses[i]]

    def _run_group(self, sink: GradientSink, segments: Sequence[Segment]) -> list[list[Tensor]]:
        """Run segments of one batch each in one pass, if the body can, and return their losses."""
        if len(segments) > 1:
            try:
                pack = Pack.of(self.passes.body, [segment.batches[0] for segment in segments])
            except CannotPackError:
                pass  # Raised before any pass; one for each segment gives the same gradient.
            else:
                hidden = self.passes.features(Batch(pack.inputs, {}, pack.rows))
                parts = pack.features(self.passes.body, hidden)
                return self._together(sink, segments, [[part] for part in parts])
        return [self._run(sink, segment) for segment in segments]

    def _run(self, sink: GradientSink, segment: Segment) -> list[Tensor]:
        """Run a segment's rows in passes of their own and return the mean loss of each task."""
        if not segment.riders:
            return [self._own(sink, segment)]
        features = [self.passes.features(batch) for batch in segment.batches]
        if not sink.measures:
            return self._together(sink, [segment], [features])[0]
        losses = self._riders(sink, segment, features)
        return [*losses, self._own(sink, segment, features)]

    def _riders(
        self, sink: GradientSink, segment: Segment, features: Sequence[Tensor]
    ) -> list[Tensor]:
        """Run each rider backward alone; the graph of the body is kept for the next."""
        losses = []
        for rider in segment.riders:
            sink.begin(rider.coefficient)
            loss = rider_loss(self.passes, rider, features)
            loss.backward(retain_graph=True)
            losses.append(loss.detach())
        return losses

    def _together(
        self,
        sink: GradientSink,
        segments: Sequence[Segment],
        features: Sequence[Sequence[Tensor]],
    ) -> list[list[Tensor]]:
        """One backward pass for all tasks of several segments, if single gradients are not needed.

        Args:
            sink: takes the gradient.
            segments: the segments.
            features: of each segment's batches, with one graph for all or one for each.

        Returns:
            The mean losses of each segment's tasks.
        """
        with self.passes.autocast():  # one block, so that parameters of several heads are cast once
            losses = [self._losses(s, f) for s, f in zip(segments, features, strict=True)]
        weighted = [
            member.coefficient * loss
            for member, loss in zip(members_of(segments), itertools.chain(*losses), strict=True)
            if member.coefficient
        ]
        if weighted:
            sink.begin(1.0)
            torch.stack(weighted).sum().backward()
        return [[loss.detach() for loss in of_segment] for of_segment in losses]

    def _losses(self, segment: Segment, features: Sequence[Tensor]) -> list[Tensor]:
        """Mean loss of each task of a segment; the dev head observes the features."""
        if segment.remember:
            self.dev_head.observe(self.passes.dev_features(features), segment.batches)
        own = [
            self.passes.losses(segment.task, segment.task.head, f, batch)
            for f, batch in zip(features, segment.batches, strict=True)
        ]
        losses = [rider_loss(self.passes, rider, features) for rider in segment.riders]
        return [*losses, RowLosses.pool(own).mean()]

    def _own(
        self, sink: GradientSink, segment: Segment, held: list[Tensor] | None = None
    ) -> Tensor:
        """Run a segment's own task batch by batch and pass its gradient to the sink.

        Args:
            sink: takes the gradient.
            segment: the task and its rows.
            held: features of the batches if they are computed already; emptied along the way.

        Returns:
            The task's mean loss.
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
        return total / count.clamp(min=1)

    def _features(self, segment: Segment, held: list[Tensor] | None) -> Iterator[Tensor]:
        """The body's features of each batch, computed when needed; the dev head observes them."""
        for i, batch in enumerate(segment.batches):
            features = self.passes.features(batch) if held is None else held.pop(0)
            if segment.remember:
                kept = self.passes.dev_features([features])
                self.dev_head.observe(kept, [batch], begins=i == 0)
            yield features
