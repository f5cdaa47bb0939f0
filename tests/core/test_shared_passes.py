"""Passes that several tasks share in a step that measures nothing, against torch.autograd."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from aang_core import Batch
from tests.core.encoders import PACKED
from tests.core.engine_checks import assert_gradients, make_step
from tests.core.engine_steps import Classify, Step, oracle, tiny_model
from tests.core.test_riders import alone, with_riders
from tests.support.gradients import (
    EndTaskHead,
    PackedEngine,
    Passes,
    Segment,
    StreamEngine,
    group_by_length,
    largest_batch,
    members_of,
    rider_loss,
    share_passes,
)


def cost(
    groups: list[list[int]], items: list[tuple[int, int]], overhead: int, most_rows: int | None
) -> float:
    """What passes over items of some length and number of rows cost; infinite if too large."""
    total = 0.0
    for group in groups:
        rows = sum(items[i][1] for i in group)
        if most_rows is not None and rows > most_rows and len(group) > 1:
            return float("inf")
        total += rows * max(items[i][0] for i in group) + overhead
    return total


@given(
    items=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 5)), min_size=1, max_size=7),
    overhead=st.integers(0, 60),
    most_rows=st.none() | st.integers(1, 12),
)
def test_rows_share_passes_at_the_least_cost(
    items: list[tuple[int, int]], overhead: int, most_rows: int | None
) -> None:
    """No split of the sorted items into contiguous groups is cheaper, by trying them all."""
    groups = group_by_length(
        [length for length, _ in items],
        overhead,
        rows=[rows for _, rows in items],
        most_rows=most_rows,
    )
    assert sorted(i for group in groups for i in group) == list(range(len(items)))
    order = sorted(range(len(items)), key=lambda i: items[i][0])
    every = (
        [order[a:b] for a, b in itertools.pairwise([0, *chosen, len(order)])]
        for k in range(len(order))
        for chosen in itertools.combinations(range(1, len(order)), k)
    )
    least = min(cost(split, items, overhead, most_rows) for split in every)
    assert cost(groups, items, overhead, most_rows) == least


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=7), overhead=st.integers(0, 60))
def test_an_item_is_a_row_unless_told(lengths: list[int], overhead: int) -> None:
    alone = group_by_length(lengths, overhead, rows=[1] * len(lengths))
    assert group_by_length(lengths, overhead) == alone


def passes_of(engine: StreamEngine | PackedEngine, step: Step) -> list[int]:
    """The rows of each pass through the body in a step that measures nothing."""
    seen: list[int] = []

    def count(module: nn.Module, args: object, kwargs: dict[str, Tensor], output: Tensor) -> None:
        seen.append(len(output))

    step.clear()
    hook = step.body.register_forward_hook(count, with_kwargs=True)
    try:
        assert engine.step(step.end, step.auxiliaries, None) is None
    finally:
        hook.remove()
    return seen


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("architecture", PACKED)
def test_the_gradient_is_that_of_separate_passes(architecture: str, split: bool) -> None:
    """Every ``.grad`` to 1e-9, whichever masks, lengths and kinds of tasks meet."""
    model = tiny_model(architecture, True)
    model.body.train()
    step = make_step(model, objectives=5, rows=(2, 1, 2, 1), split=split)
    expected = oracle(step, step.end.task.head)
    for engine in (StreamEngine(step.body, EndTaskHead()), PackedEngine(step.body, EndTaskHead())):
        seen = passes_of(engine, step)
        assert_gradients(step, expected.gradients, 1e-9)
        assert len(seen) < sum(len(s.batches) for s in step.segments)
        assert len(engine.losses) == len(step.segments)


def test_losses_keep_the_order_of_their_tasks() -> None:
    """Sorted by length, the passes take the tasks in another order."""
    step = make_step(tiny_model("bert", True), objectives=5, rows=(2, 1, 2, 1))
    engine = StreamEngine(step.body, EndTaskHead())
    passes_of(engine, step)
    passes = Passes(step.body, "fp32")
    for segment, loss in zip(step.segments, engine.losses, strict=True):
        (batch,) = segment.batches
        own = passes.losses(segment.task, segment.task.head, passes.features(batch), batch).mean()
        torch.testing.assert_close(loss, own.detach(), rtol=1e-9, atol=1e-12)


def test_riders_keep_to_the_rows_of_their_task() -> None:
    step = with_riders(make_step(tiny_model("bert", True)))
    plain = alone(step)
    expected = dict(
        zip(plain.parameters, oracle(plain, plain.end.task.head).gradients, strict=True)
    )
    engine = StreamEngine(step.body, EndTaskHead())
    assert len(passes_of(engine, step)) < 1 + len(step.auxiliaries)
    assert_gradients(step, [expected[p] for p in step.parameters], 1e-9)
    passes = Passes(step.body, "fp32")
    first = step.auxiliaries[0]
    features = [passes.features(batch) for batch in first.batches]
    of_rider = rider_loss(passes, first.riders[0], features)
    assert len(engine.losses) == len(members_of(step.segments))
    torch.testing.assert_close(engine.losses[0], of_rider.detach(), rtol=1e-9, atol=1e-12)


def test_a_shared_pass_is_no_larger_than_the_largest_batch() -> None:
    """So a limit on the rows of a batch also limits it."""
    step = make_step(tiny_model("bert", True), objectives=9, rows=(3, 1, 2, 2))
    largest = largest_batch(step.segments)
    assert largest == 4, "the end task's"
    seen = passes_of(StreamEngine(step.body, EndTaskHead()), step)
    assert max(seen) <= largest + 1, "one more row if a dimension is as large"
    assert len(seen) < 9


def test_tasks_of_several_batches_keep_their_passes() -> None:
    step = make_step(tiny_model("bert", True), split=True)
    sizes = [len(segment.batches) for segment in step.auxiliaries]
    groups = share_passes(step.auxiliaries, 100)
    assert sorted(i for group in groups for i in group) == list(range(len(sizes)))
    assert {len(group) for group in groups if any(sizes[i] > 1 for i in group)} == {1}


def test_a_step_that_measures_runs_every_task_alone() -> None:
    """Its gradient is needed by itself."""
    step = make_step(tiny_model("bert", True))
    seen: list[int] = []
    hook = step.body.register_forward_hook(lambda *given: seen.append(1))
    StreamEngine(step.body, EndTaskHead()).step(step.end, step.auxiliaries, None, norms=True)
    hook.remove()
    assert len(seen) == len(step.segments)


@pytest.mark.parametrize("affine", [True, False])
def test_tasks_do_not_share_the_statistics_of_a_batch(affine: bool) -> None:
    """Batch normalisation would mix the rows of a shared pass; a step that measures mixes none."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8, affine=affine, track_running_stats=False)
    body = nn.Sequential(nn.Linear(4, 8), norm, nn.Tanh()).double()
    segments = []
    for i in range(4):
        rows = 3 if i else 12
        x = 3 * i + (i + 1) * torch.randn(rows, 4, dtype=torch.float64)
        labels = torch.randint(2, (rows,))
        task = Classify(nn.Linear(8, 2).double(), f"task-{i}")
        segments.append(Segment(task, [Batch({"input": x}, {"labels": labels}, rows)], 0.25))
    step = Step(body, segments[0], segments[1:], [segments[0].batches[0]])
    expected = oracle(step, step.end.task.head)
    stream = StreamEngine(body, EndTaskHead())
    for norms in (False, True):
        step.clear()
        stream.step(step.end, step.auxiliaries, None, norms=norms)
        assert_gradients(step, expected.gradients, 1e-9)
    with pytest.warns(UserWarning, match="BatchNorm1d.*the stream engine takes over"):
        packed = PackedEngine(body, EndTaskHead())
    for dev in (None, step.dev):
        step.clear()
        packed.step(step.end, step.auxiliaries, dev)
        assert_gradients(step, expected.gradients, 1e-9)


def test_bodies_that_cannot_pack_run_every_task_alone() -> None:
    """DeBERTa's rows share relative positions. A part of it computes in single precision."""
    step = make_step(tiny_model("deberta", True), rows=(2, 1, 2, 1))
    expected = oracle(step, step.end.task.head)
    engine = StreamEngine(step.body, EndTaskHead())
    for _ in range(2):
        assert len(passes_of(engine, step)) == len(step.segments)
        assert_gradients(step, expected.gradients, 1e-4)
