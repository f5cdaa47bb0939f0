"""Plain training, the least cost of any method that needs v, and this package's ways."""

from collections.abc import Callable, Sequence

import torch
from aang_plugin_packed.packed import PackedEngine
from torch import Tensor

from aang_core.gradients import (
    EngineSettings,
    FreshDevHead,
    GradientEngine,
    Segment,
    StreamEngine,
)
from aang_core.gradients.passes import Precision
from aang_core.tasks.workbench import Signal
from benchmarks.steps.setting import StepInputs

Way = Callable[[], object]
"""Computes one step's gradients; its result is kept until the step is done but never read."""

SIGNALS: frozenset[Signal] = frozenset({"cosine"})


def plain(step: StepInputs, precision: Precision) -> Way:
    """Multitask training: every row in one pass, one backward of the weighted sum."""
    return lambda: _multitask(step, [*step.auxiliaries, step.end], precision)


def floor(step: StepInputs, precision: Precision) -> Way:
    """The same with the dev rows beside them."""
    dev = Segment(step.end.task, [step.dev], 0.1)
    return lambda: _multitask(step, [*step.auxiliaries, step.end, dev], precision)


def _multitask(step: StepInputs, segments: Sequence[Segment], precision: Precision) -> None:
    batches = [s.batches[0] for s in segments]
    device = step.dev.inputs["input_ids"].device.type
    with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
        hidden = step.model.body(**step.model.body.pack([b.inputs for b in batches]))
        losses: list[Tensor] = []
        start = 0
        for segment, batch in zip(segments, batches, strict=True):
            task, features = segment.task, hidden[start : start + batch.rows]
            loss = task.losses(task.head, features, batch.targets).mean()
            losses.append(segment.coefficient * loss)
            start += batch.rows
        total = torch.stack(losses).sum()
    total.backward()


def static(step: StepInputs, precision: Precision) -> Way:
    """What a weighter that asks for no signals pays."""
    engine = _stream(step, precision)
    return lambda: engine.step(step.end, step.auxiliaries, None)


def stream(step: StepInputs, precision: Precision) -> Way:
    """Signals of every task, one task at a time."""
    return _measured(step, _stream(step, precision))


def compiled(step: StepInputs, precision: Precision) -> Way:
    """Stream, the encoder's kernels made by torch.compile."""
    body = torch.compile(step.model.body, dynamic=True)
    assert isinstance(body, torch.nn.Module)
    return _measured(step, StreamEngine(body, _dev_head(), precision))


def packed(step: StepInputs, precision: Precision) -> Way:
    """Signals of every task from one pass."""
    settings = EngineSettings(precision=precision)
    return _measured(step, PackedEngine(step.model.body, _dev_head(), settings))


def _measured(step: StepInputs, engine: GradientEngine) -> Way:
    def way() -> object:
        statistics = engine.step(step.end, step.auxiliaries, [step.dev])
        assert statistics is not None
        return statistics.read(SIGNALS)

    return way


def _stream(step: StepInputs, precision: Precision) -> StreamEngine:
    return StreamEngine(step.model.body, _dev_head(), precision)


def _dev_head() -> FreshDevHead:
    return FreshDevHead(torch.Generator().manual_seed(0))
