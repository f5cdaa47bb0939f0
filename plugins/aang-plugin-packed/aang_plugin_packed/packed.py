"""The packed engine: rows of all tasks in one pass, gradients split by task at each module."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from aang_core import AangError, Batch
from aang_core.gradients import (
    ALONE,
    CannotPackError,
    DevHead,
    EngineSettings,
    GradientStatistics,
    Segment,
    StreamEngine,
    mean_gradient,
    trained,
)
from aang_plugin_packed.ledger import PackedLedger
from aang_plugin_packed.pack_run import DEV, PackRun
from aang_plugin_packed.taps import Taps


class PackedEngine:
    """Exact signals from one forward and one backward pass through the body.

    All rows, dev and end task included, go through the body together. Each head then runs on its
    own task's features, and one backward pass through the body computes gradients of activations
    only. At every module, the parameters' gradients are computed task by task, dev first
    (`aang_plugin_packed.rules`), measured, added to the weighted sum and dropped. This is the
    arithmetic of an ordinary backward pass, split by task. It is made for accelerators, which n
    small passes leave idle.

    If a parameter is used more than once, its gradient is summed over all uses before it is
    measured. For word embeddings tied to a decoder, only the rows that occur in the input are kept
    for this.

    In a step that measures, rows that several tasks share are repeated for each of them.

    If a module of the body has no rule, rows cannot be packed or the body uses a parameter outside
    the call of its module, the stream engine takes over, which computes the same numbers; a warning
    says so once.

    Args:
        body: the module that all tasks share.
        dev_head: the head that the dev gradient goes through.
        settings: the options of the engine.
        max_rows: most rows in one pass through the body; None for no limit. With a limit, tasks
            are distributed over several passes and v is kept between them. A task with more rows
            must come in several batches, and its gradient is summed over them.
    """

    cannot: ClassVar[Mapping[str, str]] = {
        "save_memory": "needs the activations of all layers, which {} drops",
        "compile": "looks at every module of the encoder, which {} fuses into one kernel",
        "task_clip": "drops each gradient before it is whole, but {} needs all of it",
        "dev_average": "drops each gradient before it is whole, but {} needs all of it",
    }
    splits_rows = False
    processes = ALONE

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        settings: EngineSettings | None = None,
        max_rows: int | None = None,
    ) -> None:
        precision = (settings or EngineSettings()).precision
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
        self,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
        *,
        norms: bool = False,
    ) -> GradientStatistics | None:
        """See `GradientEngine.step`."""
        if (norms or dev is not None) and self._taps is not None:
            remembered = dict(vars(self.dev_head))
            try:
                with _dropout_restored_on_failure(next(self.passes.body.parameters()).device):
                    return self._step(self._taps, end, auxiliaries, dev)
            except CannotPackError as error:
                # Raised in a forward pass, before any gradient was computed; with several passes
                # the dev head has seen the end task's rows.
                vars(self.dev_head).update(remembered)
                self._fall_back(error)
        statistics = self._stream.step(end, auxiliaries, dev, norms=norms)
        self.losses = self._stream.losses
        return statistics

    def limit_rows(self, rows: int) -> None:
        """See `GradientEngine.limit_rows`."""
        self.max_rows = rows
        self._stream.limit_rows(rows)

    def _fall_back(self, error: CannotPackError) -> None:
        self._taps = None
        warnings.warn(
            f"{error}; the stream engine takes over, which measures the same", stacklevel=3
        )

    def _step(
        self,
        taps: Taps,
        end: Segment,
        auxiliaries: Sequence[Segment],
        dev: Sequence[Batch] | None,
    ) -> GradientStatistics:
        segments = [alone for segment in (*auxiliaries, end) for alone in _rows_each(segment)]
        ledger = PackedLedger(
            self.passes.trained(), [s.coefficient for s in segments], self.scale.value
        )
        of_dev = dev or []
        rows = sum(batch.rows for s in segments for batch in s.batches) + _rows(of_dev)
        whole = all(len(s.batches) == 1 for s in segments) and len(of_dev) <= 1
        if whole and (self.max_rows is None or rows <= self.max_rows):
            losses = self._together(taps, ledger, segments, of_dev)
        else:
            losses = self._apart(taps, ledger, segments, of_dev)
        self.losses = [losses[k] for k in range(len(segments))]
        ledger.release()
        return ledger.statistics([s.task.name for s in segments])

    def _together(
        self, taps: Taps, ledger: PackedLedger, segments: Sequence[Segment], dev: Sequence[Batch]
    ) -> dict[int, Tensor]:
        """Run all rows in one pass and return the losses, by number of the task."""
        end = len(segments) - 1
        batches = {k: s.batches[0] for k, s in enumerate(segments)}
        if dev:
            batches[DEV] = dev[0]
        run = PackRun(self.passes, taps, ledger, batches)
        features = [run.features[end]]
        probe = self._fit(segments[end], features) if dev else None
        self._observe(segments[end], features)
        del features
        if probe is not None:
            run.dev_backward(segments[end].task, probe)
        # The end task first: how the auxiliary heads' gradients are kept depends on whether its
        # head reaches the body.
        losses = {k: run.head_backward(k, segments[k].task) for k in (end, *range(end))}
        run.backward()
        return losses

    def _apart(
        self,
        taps: Taps,
        ledger: PackedLedger,
        segments: Sequence[Segment],
        dev: Sequence[Batch],
    ) -> dict[int, Tensor]:
        """Several passes: the end task's, whose backward is last, and those of the other tasks."""
        end = len(segments) - 1
        last: PackRun | None = None
        losses: dict[int, Tensor] = {}
        if len(segments[end].batches) == 1:
            last = PackRun(self.passes, taps, ledger, {end: segments[end].batches[0]})
            features = [last.features[end]]
        else:
            features = [
                taps.features_of(partial(self.passes.features, batch))
                for batch in segments[end].batches
            ]
        probe = self._fit(segments[end], features) if dev else None
        self._observe(segments[end], features)
        del features
        if probe is not None and len(dev) > 1:
            body = self.passes.trained()
            true, _ = mean_gradient(self.passes, segments[end].task, probe, dev, body)
            for parameter, gradient in true.items():
                ledger.enter_v(parameter, gradient * self.scale.value)
        for batches in self._groups(segments[:end], dev):
            run = PackRun(self.passes, taps, ledger, batches, keeps_v=True)
            if probe is not None and DEV in batches:
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
        return self.dev_head.fit(end.task, self.passes.dev_features(features), end.batches)

    def _observe(self, end: Segment, features: Sequence[Tensor]) -> None:
        if end.remember:
            self.dev_head.observe(self.passes.dev_features(features), end.batches)

    def _groups(
        self, auxiliaries: Sequence[Segment], dev: Sequence[Batch]
    ) -> Iterator[dict[int, Batch]]:
        """Groups of batches, by task, within the limit on rows; dev is in the first group."""
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

    def _in_batches(self, ledger: PackedLedger, task: int, segment: Segment) -> Tensor:
        """Run a task whose rows come in several batches and return its loss."""
        parameters = trained(self.passes.body, segment.task.head)
        true, loss = mean_gradient(
            *(self.passes, segment.task, segment.task.head, segment.batches, parameters)
        )
        for parameter, gradient in true.items():
            ledger.add(parameter, task, (gradient * self.scale.value).unsqueeze(0))
        return loss


@contextmanager
def _dropout_restored_on_failure(device: torch.device) -> Iterator[None]:
    """If rows cannot be packed, restore the generators that dropout draws from.

    A resumed run tries to pack again, and should then drop the same units as one that was not
    stopped.
    """
    state = torch.get_rng_state()
    of_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        yield
    except CannotPackError:
        torch.set_rng_state(state)
        if of_device is not None:
            torch.cuda.set_rng_state(of_device, device)
        raise


def _rows_each(segment: Segment) -> Iterator[Segment]:
    """The tasks of a segment as separate segments, each with its own copy of the rows.

    Parameter gradients are split by row, so two tasks on one row could not be separated.
    """
    if segment.riders and len(segment.batches) > 1:
        raise AangError(
            f"{segment.riders[0].task.name} shares the rows of {segment.task.name}, which must "
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
