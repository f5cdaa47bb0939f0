"""The packed engine: rows of all tasks in one pass, their gradients told apart module by module."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.gradients.dev_average import AveragedDevHead
from aang_core.gradients.dev_head import DevHead
from aang_core.gradients.engine import Segment
from aang_core.gradients.ledger import Ledger
from aang_core.gradients.pack_run import DEV, PackRun
from aang_core.gradients.packing import CannotPackError
from aang_core.gradients.passes import Precision
from aang_core.gradients.signals import GradientStatistics
from aang_core.gradients.sink import trained
from aang_core.gradients.stream import StreamEngine
from aang_core.gradients.taps import Taps
from aang_core.gradients.task_gradient import body_gradient, mean_gradient
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import Batch


class PackedEngine:
    """Exact signals from one forward and one backward pass through the body.

    All rows, those of dev and of the end task included, go through the body together. Each head
    is then run alone on its task's features, and one backward pass through the body computes
    gradients of activations only; at every module the parameters' gradients are made task by task
    (:mod:`aang_core.gradients.rules`), dev first, measured, weighted, added up and dropped. That
    is the arithmetic of an ordinary backward pass, split by task: for accelerators, which n small
    passes leave idle.

    A parameter that is used more than once has its gradient added up over all uses before it is
    measured. For word embeddings tied to a decoder only the rows that occur in the input are kept
    meanwhile.

    Tasks that share rows have them side by side, once each, in a step that measures.

    A body with a module for which there is no rule, or whose rows cannot be packed, is trained by
    the stream engine instead, which gives the same numbers; a warning says so once.

    max_rows: the most rows in one pass through the body; None for no limit. Tasks are then spread
        over several passes and v is kept between them. A task with more rows than that has to come
        in several batches, and its gradient is added up over them.

    Raises:
        AangError: the dev gradient is to be averaged over steps; it is never held as a whole here.
    """

    splits_rows = False
    processes = ALONE

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        precision: Precision = "fp32",
        *,
        max_rows: int | None = None,
    ) -> None:
        if isinstance(dev_head, AveragedDevHead):
            raise AangError(
                "the packed engine measures against the dev gradient while it is being made, so it "
                "cannot average it over steps; take the stream engine"
            )
        self.dev_head = dev_head
        self.max_rows = max_rows
        self._stream = StreamEngine(body, dev_head, precision, hold_end_task=max_rows is None)
        self.passes = self._stream.passes
        self.scale = self._stream.scale
        self.losses: Sequence[Tensor] = []
        self._taps: Taps | None = None
        try:
            self._taps = Taps(body)
        except CannotPackError as error:
            self._fall_back(error)

    def step(
        self, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch] | None
    ) -> GradientStatistics | None:
        """See :meth:`aang_core.gradients.GradientEngine.step`."""
        if dev is not None and self._taps is not None:
            try:
                return self._step(self._taps, end, auxiliaries, dev)
            except CannotPackError as error:
                # Raised in a forward pass, before any gradient has been made.
                self._fall_back(error)
        statistics = self._stream.step(end, auxiliaries, dev)
        self.losses = self._stream.losses
        return statistics

    def limit_rows(self, rows: int) -> None:
        """See :meth:`aang_core.gradients.GradientEngine.limit_rows`."""
        self.max_rows = rows
        self._stream.limit_rows(rows)

    def _fall_back(self, error: CannotPackError) -> None:
        self._taps = None
        warnings.warn(
            f"{error}; the stream engine takes over, which measures the same", stacklevel=3
        )

    def _step(
        self, taps: Taps, end: Segment, auxiliaries: Sequence[Segment], dev: Sequence[Batch]
    ) -> GradientStatistics:
        segments = [alone for segment in (*auxiliaries, end) for alone in _rows_each(segment)]
        body = self.passes.trained()
        ledger = Ledger(
            body,
            body[0].device,
            [s.coefficient for s in segments],
            end=len(segments) - 1,
            scale=self.scale.value,
        )
        rows = sum(batch.rows for s in segments for batch in s.batches) + _rows(dev)
        whole = all(len(s.batches) == 1 for s in segments) and len(dev) == 1
        if whole and (self.max_rows is None or rows <= self.max_rows):
            losses = self._together(taps, ledger, segments, dev[0])
        else:
            losses = self._apart(taps, ledger, segments, dev)
        self.losses = [losses[k] for k in range(len(segments))]
        ledger.release()
        return ledger.statistics([s.task.name for s in segments])

    def _together(
        self, taps: Taps, ledger: Ledger, segments: Sequence[Segment], dev: Batch
    ) -> dict[int, Tensor]:
        """All rows in one pass; the losses by number of the task."""
        end = len(segments) - 1
        batches = {DEV: dev, **{k: s.batches[0] for k, s in enumerate(segments)}}
        run = PackRun(self.passes, taps, ledger, batches)
        probe = self._fit(segments[end], [run.features[end]])
        run.dev_backward(segments[end].task, probe)
        # The end task first: whether its head reaches the body tells how the auxiliary heads'
        # gradients have to be kept.
        losses = {k: run.head_backward(k, segments[k].task) for k in (end, *range(end))}
        run.backward()
        return losses

    def _apart(
        self, taps: Taps, ledger: Ledger, segments: Sequence[Segment], dev: Sequence[Batch]
    ) -> dict[int, Tensor]:
        """Several passes: the end task's, which is finished last, then dev with auxiliary tasks."""
        end = len(segments) - 1
        last: PackRun | None = None
        losses: dict[int, Tensor] = {}
        if len(segments[end].batches) == 1:
            last = PackRun(self.passes, taps, ledger, {end: segments[end].batches[0]})
            features = [last.features[end]]
        else:
            with torch.no_grad():
                features = [self.passes.features(b) for b in segments[end].batches]
        probe = self._fit(segments[end], features)
        del features
        if len(dev) > 1:
            true = body_gradient(self.passes, segments[end].task, probe, dev)
            for parameter, gradient in true.items():
                ledger.enter_v(parameter, gradient * self.scale.value)
        for batches in self._groups(segments[:end], dev):
            run = PackRun(self.passes, taps, ledger, batches, keeps_v=True)
            if DEV in batches:
                run.dev_backward(segments[end].task, probe)
            for k in batches:
                if k != DEV:
                    losses[k] = run.head_backward(k, segments[k].task)
            run.backward()
        for k, segment in enumerate(segments[:end]):
            if len(segment.batches) > 1:
                losses[k] = self._in_batches(ledger, k, segment)
        if last is None:
            losses[end] = self._in_batches(ledger, end, segments[end])
        else:
            losses[end] = last.head_backward(end, segments[end].task)
            last.backward()
        return losses

    def _fit(self, end: Segment, features: Sequence[Tensor]) -> nn.Module:
        seen = self.passes.dev_features(features)
        probe = self.dev_head.fit(end.task, seen, end.batches)
        if end.remember:
            self.dev_head.observe(seen, end.batches)
        return probe

    def _groups(
        self, auxiliaries: Sequence[Segment], dev: Sequence[Batch]
    ) -> Iterator[dict[int, Batch]]:
        """Batches by task, as many together as there may be rows; dev is in the first."""
        group: dict[int, Batch] = {DEV: dev[0]} if len(dev) == 1 else {}
        for k, segment in enumerate(auxiliaries):
            if len(segment.batches) > 1:
                continue
            batch = segment.batches[0]
            rows = batch.rows + _rows(group.values())
            if group and self.max_rows is not None and rows > self.max_rows:
                yield group
                group = {}
            group[k] = batch
        if group:
            yield group

    def _in_batches(self, ledger: Ledger, task: int, segment: Segment) -> Tensor:
        """A task with more rows than go through the body at once; its loss."""
        parameters = trained(self.passes.body, segment.task.head)
        true, loss = mean_gradient(
            *(self.passes, segment.task, segment.task.head, segment.batches, parameters)
        )
        for parameter, gradient in true.items():
            ledger.add(parameter, task, (gradient * self.scale.value).unsqueeze(0))
        return loss


def _rows_each(segment: Segment) -> Iterator[Segment]:
    """The tasks of a segment, each with the segment's rows as rows of its own.

    A row's part in the parameters' gradients is told apart by the gradient that comes back to it,
    so two tasks cannot be told apart on one row.
    """
    if segment.riders and len(segment.batches) > 1:
        raise AangError(
            f"{segment.riders[0].task.name} shares the rows of {segment.task.name}, which have to "
            "go through the encoder in one pass; allow more rows at once, or train with "
            "--gradients stream"
        )
    for rider in segment.riders:
        lead = segment.batches[0]
        batch = Batch(lead.inputs, rider.targets, lead.rows)
        yield Segment(rider.task, [batch], rider.coefficient)
    yield replace(segment, riders=())


def _rows(batches: Iterable[Batch]) -> int:
    return sum(batch.rows for batch in batches)
