"""Tasks that share the rows of another, and losses that compare rows, against torch.autograd."""

import copy
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, RowLosses
from tests.core.engine_checks import assert_exact, assert_gradients, make_step
from tests.core.engine_steps import (
    Classify,
    Denoise,
    Expected,
    Step,
    oracle,
    text_batch,
    tiny_model,
)
from tests.support.gradients import (
    DistributedEngine,
    EndTaskHead,
    GradientStatistics,
    PackedEngine,
    Passes,
    Rider,
    Segment,
    Several,
    StreamEngine,
    joined,
)
from tests.support.training import problem_of


class Contrast(Classify):
    """Rows of one label are alike; a row without such another has no loss."""

    couples_rows = True

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        labels = targets["labels"]
        unit = functional.normalize(head(features), dim=1)
        itself = torch.eye(len(labels), dtype=torch.bool)
        logs = (unit @ unit.T / 0.5).masked_fill(itself, -1e9).log_softmax(dim=1)
        positive = (labels[:, None] == labels) & ~itself
        counts = positive.sum(dim=1)
        sums = -(logs * positive).sum(dim=1) / counts.clamp(min=1)
        return RowLosses(sums, (counts > 0).long())


def with_riders(step: Step, *, seed: int = 1) -> Step:
    """A contrast and a classification on the end task's rows; a contrast on the first task's."""
    torch.manual_seed(seed)
    model = tiny_model("bert", True)

    def rider(task: Classify, of: Segment, coefficient: float) -> Rider:
        task.head.to(torch.float64)
        labels = torch.cat([batch.targets["labels"] for batch in of.batches])
        return Rider(task, {"labels": labels}, coefficient)

    first, *others = step.auxiliaries
    contrasts = [
        Contrast(model.heads.classification(), "contrast"),
        Contrast(model.heads.classification(), "contrast-first"),
    ]
    on_end = [
        rider(contrasts[0], step.end, 0.15),
        rider(Classify(model.heads.classification(), "again"), step.end, 0.0),
    ]
    on_first = [rider(contrasts[1], first, 0.1)]
    return replace(
        step,
        end=replace(step.end, riders=on_end),
        auxiliaries=[replace(first, riders=on_first), *others],
    )


def alone(step: Step) -> Step:
    """The same step with separate rows for every rider: the expected result."""

    def apart(segment: Segment) -> list[Segment]:
        inputs = {
            name: joined([batch.inputs[name] for batch in segment.batches])
            for name in segment.batches[0].inputs
        }
        rows = sum(batch.rows for batch in segment.batches)
        riders = [
            Segment(r.task, [Batch(inputs, r.targets, rows)], r.coefficient) for r in segment.riders
        ]
        return [*riders, replace(segment, riders=())]

    *on_end, end = apart(step.end)
    auxiliaries = [part for segment in step.auxiliaries for part in apart(segment)]
    return replace(step, end=end, auxiliaries=[*auxiliaries, *on_end])


def with_tied_rider(step: Step) -> Step:
    """Denoising on the end task's rows, its decoder tied to the word embeddings."""
    head = tiny_model("bert", True).heads.language_model().to(torch.float64)
    inputs = joined([batch.inputs["attention_mask"] for batch in step.end.batches])
    generator = torch.Generator().manual_seed(2)
    targets = text_batch(*inputs.shape, generator).targets
    return replace(
        step, end=replace(step.end, riders=[Rider(Denoise(head, "denoise"), targets, 0.3)])
    )


class Thread(Several):
    """A thread in place of a process; it exchanges tensors with the others through a list."""

    def __init__(self, rank: int, sent: list[Tensor], meeting: threading.Barrier) -> None:
        super().__init__(rank, len(sent))
        self._sent = sent
        self._meeting = meeting

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        summed = []
        for tensor in tensors:
            self._sent[self.rank] = tensor.detach()
            self._meeting.wait()
            summed.append(torch.stack(self._sent).sum(dim=0).to(tensor.dtype))
            self._meeting.wait()
        return summed


def expected_of(step: Step) -> Expected:
    return oracle(alone(step), step.end.task.head)


@pytest.mark.parametrize("split", [False, True])
def test_the_stream_engine_equals_autograd(split: bool) -> None:
    """Each rider's cosine, dot and norm, and every ``.grad``, to 1e-9."""
    step = with_riders(make_step(tiny_model("bert", True), split=split, kinds=("all",) * 4))
    expected = expected_of(step)
    for engine in (
        StreamEngine(step.body, EndTaskHead()),
        StreamEngine(step.body, EndTaskHead(), hold_end_task=False),
    ):
        alone(step).clear()
        statistics = engine.step(step.end, step.auxiliaries, step.dev)
        assert_exact(statistics, expected, alone(step), 1e-9)


@pytest.mark.parametrize("tied", [True, False])
def test_several_processes_equal_autograd(tied: bool) -> None:
    """What reaches the body through a tied decoder counts once, not once per process."""
    step = make_step(tiny_model("bert", True), split=True, kinds=("all",) * 4)
    step = with_tied_rider(step) if tied else with_riders(step)
    alone(step).clear()
    expected = expected_of(step)
    copies = [copy.deepcopy(step) for _ in range(2)]
    sent, meeting = [torch.zeros(())] * 2, threading.Barrier(2, timeout=60)

    def run(rank: int) -> GradientStatistics | None:
        own, process = copies[rank], Thread(rank, sent, meeting)
        engine = DistributedEngine(own.body, EndTaskHead(), "fp32", process)
        return engine.step(own.end, own.auxiliaries, own.dev)

    with ThreadPoolExecutor(2) as threads:
        measured = list(threads.map(run, range(2)))
    for own, statistics in zip(copies, measured, strict=True):
        assert_exact(statistics, expected, alone(own), 1e-9)


def test_the_packed_engine_equals_autograd() -> None:
    step = with_riders(make_step(tiny_model("bert", True), kinds=("all",) * 4))
    expected = expected_of(step)
    engine = PackedEngine(step.body, EndTaskHead())
    alone(step).clear()
    assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, alone(step), 1e-9)


@pytest.mark.parametrize("split", [False, True])
def test_a_step_that_measures_nothing_has_the_same_gradient(split: bool) -> None:
    """From one backward pass for all tasks that share a forward pass."""
    step = with_riders(make_step(tiny_model("bert", True), split=split, kinds=("all",) * 4))
    expected = expected_of(step)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    handle = step.body.register_forward_hook(count)
    engine = StreamEngine(step.body, EndTaskHead())
    alone(step).clear()
    assert engine.step(step.end, step.auxiliaries, None) is None
    handle.remove()
    shared = 0 if split else 1
    assert calls == sum(len(s.batches) for s in step.segments) - shared, "two objectives share one"
    assert_gradients(alone(step), expected.gradients, 1e-9)
    assert len(engine.losses) == len(step.segments) + 3


def test_losses_come_in_the_order_of_the_members() -> None:
    """The message about a bad loss names its rider."""
    step = with_riders(make_step(tiny_model("bert", True), kinds=("all",) * 4))
    names = [member.task.name for s in (*step.auxiliaries, step.end) for member in s.members]
    assert names == [
        *("contrast-first", "denoise-0", "classify-1", "denoise-2"),
        *("contrast", "again", "end-task"),
    ]
    losses = {name: float("nan") if name == "contrast" else 1.0 for name in names}
    assert problem_of(losses, 1.0) == "the loss of contrast is nan"
    assert problem_of(dict.fromkeys(names[-2:], 1.0), float("inf")) == (
        "the gradient of again, end-task together is not finite"
    )


def test_features_of_batches_are_joined_and_padded() -> None:
    generator = torch.Generator().manual_seed(0)
    body = tiny_model("bert", True).body
    batches = [text_batch(2, 5, generator), text_batch(3, 8, generator)]
    features = [Passes(body, "fp32").features(batch) for batch in batches]
    whole = joined(features)
    assert whole.shape == (5, 8, features[0].shape[2])
    assert torch.equal(whole[:2, :5], features[0])
    assert torch.equal(whole[2:], features[1])
    assert not whole[:2, 5:].any()
    flat = joined([torch.ones(2, 3), torch.zeros(1, 3)])
    assert flat.tolist() == [[1.0] * 3, [1.0] * 3, [0.0] * 3]
