"""The stream engine: one task at a time, each gradient consumed as backward computes it."""

import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.ledger import UNCLIPPED, GradientStatistics, StreamLedger, TaskClip
from aang_core.gradients.passes import (
    Passes,
    Precision,
    backward_over,
    body_gradient,
    rider_loss,
    taken,
    trained,
)
from aang_core.gradients.segments import (
    CannotPackError,
    Pack,
    Segment,
    batch_norm_of,
    largest_batch,
    members_of,
    share_passes,
)
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import Batch, RowLosses


class StreamEngine:
    """Exact signals at the cost of plain multitask training plus one pass over the dev rows.

    v is computed first; then each task runs forward and backward alone. As soon as backward has
    computed a parameter's gradient, its part of ⟨g_k, v⟩ and ‖g_k‖² is measured, its weighted value
    is added to the step's gradient, and it is dropped. Memory is two gradient-sized buffers,
    whatever the number of tasks, and the activations of one batch of one auxiliary task. Losses are
    not multiplied by their coefficients before backward, so a task with coefficient zero still has
    statistics.

    In a step that measures nothing, backward fills ``.grad``, and auxiliary tasks of few rows share
    a pass.

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
        if dev is None and not norms and self.clip.norm is None:
            self.losses = self.add_up(auxiliaries, largest_batch((*auxiliaries, end)), end)
            return None
        members = members_of((*auxiliaries, end))
        ledger = self.ledger([*auxiliaries, end], end=len(members) - 1)
        held: list[Tensor] | None = None
        if dev is not None:
            # The end task's forward pass comes first, because the dev head needs its features. Its
            # backward pass comes last, so that the buffer holds only the auxiliary sum when the
            # norm of that is computed. Only this task's activations are kept in between.
            hold = self.hold_end_task or bool(end.riders)
            with torch.set_grad_enabled(hold):
                features = [self.passes.features(batch) for batch in end.batches]
            probe = self.dev_head.fit(end.task, self.passes.dev_features(features), end.batches)
            v = self.dev_head.smoothed(body_gradient(self.passes, end.task, probe, dev))
            for parameter, gradient in v.items():
                ledger.enter_v(parameter, gradient)
            held = features if hold else None
            del features
        with ledger.attached():
            losses = self.measure(ledger, auxiliaries)
            self.losses = [*losses, *self._one_by_one(ledger, end, held)]
        ledger.release()
        if dev is None and not norms:
            return None
        return ledger.statistics([member.task.name for member in members], self.clip)

    def add_up(self, auxiliaries: Sequence[Segment], most_rows: int, *end: Segment) -> list[Tensor]:
        """Leave Σ coefficient · ∇loss in ``.grad``, without measuring single gradients.

        Auxiliary segments of few rows share a pass: one over two rows takes almost as long as one
        over ten. Batch normalisation would mix the rows of such a pass, so with it every segment
        has its own.

        Args:
            auxiliaries: the segments of auxiliary tasks.
            most_rows: most rows in a pass that several segments share.
            *end: the end task's segment, if its gradient is to be added.

        Returns:
            The mean loss of each task, in the order of `members_of`.
        """
        segments = [*auxiliaries, *end]
        heads = [member.task.head for member in members_of(segments)]
        parameters = trained(self.passes.body, *heads)
        taken(parameters)
        groups = [[i] for i in range(len(segments))]
        if self._shares_passes:
            groups = [*share_passes(auxiliaries, most_rows), *groups[len(auxiliaries) :]]
        losses: dict[int, list[Tensor]] = {}
        for group in groups:
            of_group = self._add_group([segments[i] for i in group], parameters)
            losses |= zip(group, of_group, strict=True)
        if self.scale.value != 1.0:
            for parameter, gradient in taken(parameters).items():
                parameter.grad = self.scale.off(gradient)
        return [loss for i in range(len(segments)) for loss in losses[i]]

    def _add_group(
        self, segments: Sequence[Segment], parameters: Sequence[nn.Parameter]
    ) -> list[list[Tensor]]:
        """Add the gradients of segments to ``.grad``, from one pass if there are several."""
        if len(segments) > 1:
            try:
                pack = Pack.of(self.passes.body, [segment.batches[0] for segment in segments])
            except CannotPackError:
                # Raised before any pass; one for each segment gives the same gradient.
                return [self._add_group([segment], parameters)[0] for segment in segments]
            hidden = self.passes.features(Batch(pack.inputs, {}, pack.rows))
            parts = pack.features(self.passes.body, hidden)
            return self._add_together(segments, [[part] for part in parts])
        (segment,) = segments
        if not segment.riders:
            return [[self._add_alone(segment, parameters)]]
        return self._add_together([segment], [list(self._features(segment))])

    def _add_together(
        self, segments: Sequence[Segment], features: Sequence[Sequence[Tensor]]
    ) -> list[list[Tensor]]:
        """One backward pass for all tasks of several segments.

        Args:
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
            torch.stack(weighted).sum().backward()
        return [[loss.detach() for loss in of_segment] for of_segment in losses]

    def _add_alone(self, segment: Segment, parameters: Sequence[nn.Parameter]) -> Tensor:
        """Add the gradient of a segment's only task to ``.grad``, and return its mean loss."""
        coefficient = segment.coefficient
        if not coefficient:
            with torch.no_grad():
                return self._losses(segment, list(self._features(segment)))[0]
        if coefficient == 1.0 and len(segment.batches) == 1:
            return self._backward(segment, self._features(segment))[0]
        # Weighted after backward, which is what a step that measures does.
        before = taken(parameters)
        loss, count = self._backward(segment, self._features(segment))
        found = taken(parameters)
        for parameter, total in before.items():
            parameter.grad = total
        for parameter, gradient in found.items():
            if len(segment.batches) > 1:
                gradient.div_(count)
            if parameter.grad is not None:
                parameter.grad.add_(gradient, alpha=coefficient)
            else:
                parameter.grad = gradient.mul_(coefficient)
        return loss

    def _losses(self, segment: Segment, features: Sequence[Tensor]) -> list[Tensor]:
        """Mean loss of each task of a segment."""
        own = [
            self.passes.losses(segment.task, segment.task.head, f, batch)
            for f, batch in zip(features, segment.batches, strict=True)
        ]
        losses = [rider_loss(self.passes, rider, features) for rider in segment.riders]
        return [*losses, RowLosses.pool(own).mean()]

    def ledger(self, segments: Sequence[Segment], *, end: int | None) -> StreamLedger:
        """An empty ledger that takes the gradients of the segments' tasks."""
        heads = [member.task.head for member in members_of(segments)]
        return StreamLedger(
            self.passes.trained(),
            trained(self.passes.body, *heads),
            next(self.passes.body.parameters()).device,
            end=end,
            scale=self.scale,
            clip=self.clip,
        )

    def measure(self, ledger: StreamLedger, segments: Sequence[Segment]) -> list[Tensor]:
        """Run every task of the segments backward by itself, with the ledger attached.

        Returns:
            The mean loss of each task, in the order of `members_of`.
        """
        return [loss for segment in segments for loss in self._one_by_one(ledger, segment)]

    def _one_by_one(
        self, ledger: StreamLedger, segment: Segment, held: list[Tensor] | None = None
    ) -> list[Tensor]:
        """Run the riders of a segment, then its own task, and return their mean losses.

        Args:
            ledger: takes the gradients.
            segment: the segment.
            held: features of its batches if they are computed already; emptied along the way.
        """
        if segment.riders and held is None:
            held = [self.passes.features(batch) for batch in segment.batches]
        losses = []
        for rider in segment.riders:
            ledger.begin(rider.coefficient)
            loss = rider_loss(self.passes, rider, held or [])
            # The graph of the body is kept for the next.
            loss.backward(retain_graph=True)
            losses.append(loss.detach())
        several = len(segment.batches) > 1
        ledger.begin(segment.coefficient, in_parts=several)
        loss, _ = self._backward(segment, self._features(segment, held), ledger)
        if several:
            ledger.take_left_over()
        return [*losses, loss]

    def _backward(
        self, segment: Segment, features: Iterator[Tensor], ledger: StreamLedger | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run a segment's own task backward, batch by batch.

        Args:
            segment: the segment.
            features: of its batches.
            ledger: takes the gradients; None to leave them in ``.grad``.

        Returns:
            The task's mean loss, and the number of targets by which the gradients of several
            batches have to be divided.
        """
        batches, task = segment.batches, segment.task
        if len(batches) == 1:
            mean = self.passes.losses(task, task.head, next(features), batches[0]).mean()
            mean.backward()
            return mean.detach(), mean.new_ones(())
        total, count = backward_over(
            *(self.passes, task, task.head, batches, features),
            before_last=None if ledger is None else ledger.last_part,
        )
        count = count.clamp(min=1)
        return total / count, count

    def _features(self, segment: Segment, held: list[Tensor] | None = None) -> Iterator[Tensor]:
        """The body's features of each batch, computed when needed; the dev head observes them."""
        for i, batch in enumerate(segment.batches):
            features = self.passes.features(batch) if held is None else held.pop(0)
            if segment.remember:
                kept = self.passes.dev_features([features])
                self.dev_head.observe(kept, [batch], begins=i == 0)
            yield features
