"""Both gradient engines against torch.autograd, on every kind of encoder."""

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from aang_core import Batch, RowLosses
from tests.core.encoders import ARCHITECTURES, PACKED
from tests.core.engine_checks import SIGNALS, assert_exact, assert_gradients, make_step
from tests.core.engine_steps import (
    Classify,
    Step,
    oracle,
    tiny_model,
)
from tests.support.gradients import (
    DistributedEngine,
    EndTaskHead,
    FreshDevHead,
    GradientEngine,
    PackedEngine,
    Precision,
    RememberingDevHead,
    Rider,
    Segment,
    StreamEngine,
)
from tests.support.model import EncoderBody
from tests.support.training import ALONE


def engines(body: nn.Module) -> list[GradientEngine]:
    head = EndTaskHead()
    return [
        StreamEngine(body, head),
        StreamEngine(body, head, hold_end_task=False),
        PackedEngine(body, head),
        PackedEngine(body, head, max_rows=6),
    ]


ALWAYS = {
    *(("bert", True, False), ("bert", False, True)),
    *(("modernbert", True, True), ("modernbert", False, False)),
}
"""Architecture, tied, and split: pairs of values instead of all combinations."""


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    ("architecture", "tied", "split"),
    [
        pytest.param(*case, marks=[] if case in ALWAYS else pytest.mark.full)
        for case in itertools.product(PACKED, (True, False), (False, True))
    ],
)
def test_engines_equal_autograd(architecture: str, tied: bool, split: bool) -> None:
    """Cosines, dots, norms and every ``.grad`` to 1e-9, without falling back."""
    model = tiny_model(architecture, tied)
    model.body.train()
    step = make_step(model, split=split)
    expected = oracle(step, step.end.task.head)
    for engine in engines(step.body):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)


@st.composite
def drawn_steps(draw: st.DrawFn) -> tuple[Step, int]:
    model = tiny_model(draw(st.sampled_from(PACKED)), draw(st.booleans(), label="tied"))
    n = draw(st.integers(0, 5), label="n")
    four = {"min_size": 4, "max_size": 4}
    step = make_step(
        model,
        objectives=n,
        rows=tuple(draw(st.lists(st.integers(1, 4), **four))),
        tokens=tuple(draw(st.lists(st.integers(3, 10), **four))),
        kinds=tuple(draw(st.lists(st.sampled_from(("all", "before", "random")), **four))),
        selected=tuple(draw(st.lists(st.sampled_from((0.0, 0.2, 1.0)), **four))),
        coefficients=tuple(draw(st.lists(st.sampled_from((0.0, 0.1, 0.7)), **four))),
        split=draw(st.booleans(), label="split"),
        seed=draw(st.integers(0, 1000)),
    )
    return step, draw(st.sampled_from((0, 1, 2)), label="frozen")


@contextlib.contextmanager
def frozen(body: nn.Module, how_much: int) -> Iterator[None]:
    """Some of the body's parameters fixed: none, the first few, or every other one."""
    parameters = list(body.parameters())
    chosen = [[], parameters[:5], parameters[::2]][how_much]
    for parameter in chosen:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in chosen:
            parameter.requires_grad_(True)


@pytest.mark.full
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=drawn_steps())
def test_engines_equal_autograd_whatever_the_step(drawn: tuple[Step, int]) -> None:
    """Any number of objectives and rows, any lengths and masks, frozen parameters, no targets."""
    step, how_much = drawn
    step.body.train()
    with frozen(step.body, how_much):
        expected = oracle(step, step.end.task.head)
        for engine in engines(step.body):
            step.clear()
            assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-9)
        step.clear()


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_single_precision(architecture: str) -> None:
    """In float32 the engines agree with autograd to 1e-4."""
    model = tiny_model(architecture, True, dtype=torch.float32)
    model.body.train()
    step = make_step(model)
    expected = oracle(step, step.end.task.head)
    for engine in engines(step.body):
        step.clear()
        assert_exact(engine.step(step.end, step.auxiliaries, step.dev), expected, step, 1e-4)


@pytest.mark.parametrize("split", [False, True])
def test_the_scale_of_losses_is_divided_out(split: bool) -> None:
    """A power of two changes no signal and no gradient, whichever engine."""
    model = tiny_model("bert", True)
    model.body.train()
    step = make_step(model, split=split)
    expected = oracle(step, step.end.task.head)
    for engine in engines(step.body):
        engine.scale.value = 2.0**20
        for dev in (step.dev, None):
            step.clear()
            statistics = engine.step(step.end, step.auxiliaries, dev)
            if dev is not None:
                assert_exact(statistics, expected, step, 1e-9)
            assert_gradients(step, expected.gradients, 1e-9)


@dataclass
class Faint(Classify):
    """A loss whose gradients are below what sixteen bits can hold."""

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        sums, counts = super().losses(head, features, targets)
        return RowLosses(1e-7 * sums, counts)


@pytest.mark.parametrize("engine", [StreamEngine, PackedEngine])
def test_the_scale_keeps_small_gradients(
    engine: type[StreamEngine] | type[PackedEngine],
) -> None:
    """Without one they vanish in fp16."""
    model = tiny_model("bert", True, dtype=torch.float32)
    model.body.train()
    step = make_step(model, objectives=1)
    step.end = Segment(Faint(model.classifier), step.end.batches, 0.5)
    norm = oracle(step, model.classifier).norm["end-task"]
    measured = []
    for value in (2.0**16, 1.0):
        half = engine(step.body, EndTaskHead(), "fp16")
        half.scale.value = value
        step.clear()
        statistics = half.step(step.end, step.auxiliaries, step.dev)
        assert statistics is not None
        measured.append(statistics.read(SIGNALS).norm["end-task"])
    assert measured[0] == pytest.approx(norm, rel=0.02)
    assert measured[1] < 0.5 * norm


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_half_precision_passes(architecture: str, precision: Precision) -> None:
    """Both engines measure what the rounding of sixteen bits leaves of it."""
    model = tiny_model(architecture, True, dtype=torch.float32)
    model.body.train()
    step = make_step(model)
    expected = oracle(step, step.end.task.head)
    head = EndTaskHead()
    for engine in (
        StreamEngine(step.body, head, precision),
        PackedEngine(step.body, head, precision),
    ):
        # These gradients are large; the first scale would overflow.
        engine.scale.value = min(engine.scale.value, 2.0**10)
        step.clear()
        statistics = engine.step(step.end, step.auxiliaries, step.dev)
        assert statistics is not None
        signals = statistics.read(SIGNALS)
        for name, norm in expected.norm.items():
            slack = 0.1 if precision == "bf16" else 0.02
            assert signals.norm[name] == pytest.approx(norm, rel=slack, abs=1e-3)
            cosine = expected.dot[name] / (norm * expected.dev_norm) if norm else 0.0
            assert signals.cosine[name] == pytest.approx(cosine, abs=slack)
        assert all(p.grad is None or p.grad.dtype == torch.float32 for p in step.parameters)


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [
        pytest.param(kind, architecture, marks=[] if architecture in few else pytest.mark.full)
        for kind, all_, few in (
            (StreamEngine, ARCHITECTURES, ("bert", "deberta-v2")),
            (PackedEngine, PACKED, ("bert", "modernbert")),
        )
        for architecture in all_
    ],
)
def test_dropout_is_seeded(
    kind: type[StreamEngine] | type[PackedEngine], architecture: str
) -> None:
    """With dropout on, the same generators give the same numbers, others give others."""
    model = tiny_model(architecture, True, dropout=0.2)
    model.body.train()
    step = make_step(model)
    for segment in step.segments:
        segment.task.head.train()

    def run(seed: int) -> tuple[list[float], list[Tensor]]:
        torch.manual_seed(seed)
        engine = kind(step.body, FreshDevHead(torch.Generator().manual_seed(seed)))
        step.clear()
        statistics = engine.step(step.end, step.auxiliaries, step.dev)
        assert statistics is not None
        gradients = [p.grad for p in step.parameters if p.grad is not None]
        return list(statistics.read(SIGNALS).cosine.values()), gradients

    first, second, other = run(1), run(1), run(2)
    assert first[0] == second[0]
    assert all(torch.equal(a, b) for a, b in zip(first[1], second[1], strict=True))
    assert first[0] != other[0]


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(name, marks=[] if name in ("bert", "modernbert") else pytest.mark.full)
        for name in PACKED
    ],
)
def test_packed_is_exact_under_dropout(architecture: str) -> None:
    """With the dropout masks of its one pass, each task's gradient is autograd's."""
    model = tiny_model(architecture, True, dropout=0.2)
    model.body.train()
    step = make_step(model)
    for segment in step.segments:
        segment.task.head.eval()
    inputs = [step.dev[0], *(s.batches[0] for s in step.segments)]

    class Recorded(nn.Module):
        """The body; hands each task its own rows of one pass over all."""

        def __init__(self) -> None:
            super().__init__()
            self.body = step.body
            torch.manual_seed(3)
            packed = model.body.pack([b.inputs for b in inputs])
            self.rows = sum(b.rows for b in inputs)
            assert self.rows not in packed["attention_mask"].shape[1:]
            self.hidden = step.body(**packed)

        def forward(self, **given: Tensor) -> Tensor:
            start = 0
            for batch in inputs:
                if batch.inputs["input_ids"] is given["input_ids"]:
                    return model.body.unpack(self.hidden[start : start + batch.rows], given)
                start += batch.rows
            raise AssertionError("rows that were not packed")

    recorded = Step(Recorded(), step.end, step.auxiliaries, step.dev)
    expected = oracle(recorded, step.end.task.head)
    order = recorded.parameters
    expected.gradients = [
        expected.gradients[[q is p for q in order].index(True)] for p in step.parameters
    ]
    step.clear()
    torch.manual_seed(3)
    statistics = PackedEngine(step.body, EndTaskHead()).step(step.end, step.auxiliaries, step.dev)
    assert_exact(statistics, expected, step, 1e-9)


def test_without_signals_engines_train_the_same() -> None:
    """Nothing is measured, and the gradients are those of the weighted sum."""
    model = tiny_model("bert", True)
    model.body.train()
    step = make_step(model)
    expected = oracle(step, step.end.task.head)
    for engine in engines(step.body):
        step.clear()
        assert engine.step(step.end, step.auxiliaries, None) is None
        assert_gradients(step, expected.gradients, 1e-9)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("norms", [None, False, True])
def test_a_coefficient_of_zero_leaves_the_head_without_a_gradient(
    split: bool, norms: bool | None
) -> None:
    """An optimiser would move it along its momentum if its gradient were zero; None is for dev."""
    model = tiny_model("bert", True)
    step = make_step(model, objectives=4, split=split, coefficients=(0.6, 0.0, 0.4, 0.0))
    step = replace(step, end=replace(step.end, coefficient=0.0))
    head = model.heads.classification().double()
    labels = torch.cat([batch.targets["labels"] for batch in step.end.batches])
    rider = Rider(Classify(head, "rider"), {"labels": labels}, 0.0)
    left_out = [step.end, step.auxiliaries[1], step.auxiliaries[3]]
    with_rider = replace(step, end=replace(step.end, riders=[rider]))
    made = [*engines(step.body), DistributedEngine(step.body, EndTaskHead(), "fp32", ALONE)]
    expected = oracle(step, step.end.task.head)
    for engine in made:
        # The packed engine takes no riders on rows in several batches.
        now = step if split and isinstance(engine, PackedEngine) else with_rider
        step.clear()
        engine.step(now.end, now.auxiliaries, now.dev if norms is None else None, norms=bool(norms))
        assert_gradients(step, expected.gradients, 1e-9)
        for module in [head, *(segment.task.head for segment in left_out)]:
            assert all(p.grad is None for p in module.parameters()), type(engine)


class Wrapper(nn.Module):
    """An encoder body and something of the user's own on top."""

    def __init__(self, body: EncoderBody) -> None:
        super().__init__()
        self.body = body
        self.pack, self.unpack = body.pack, body.unpack


class Scaled(Wrapper):
    """With a parameter of its own, for which there is no rule."""

    def __init__(self, body: EncoderBody) -> None:
        super().__init__(body)
        self.scale = nn.Parameter(torch.full((16,), 1.5, dtype=torch.float64))

    def forward(self, **inputs: Tensor) -> Tensor:
        return torch.mul(self.body(**inputs), self.scale)


class WithoutRows(Wrapper):
    """With a linear layer on what has no rows: token positions."""

    def __init__(self, body: EncoderBody) -> None:
        super().__init__(body)
        self.linear = nn.Linear(1, 16, dtype=torch.float64)

    def forward(self, **inputs: Tensor) -> Tensor:
        features: Tensor = self.body(**inputs)
        positions = torch.arange(features.shape[1], dtype=torch.float64)
        return features + self.linear(positions.unsqueeze(1))


class Unpackable(nn.Module):
    """Without the methods that bring rows to one length."""

    def __init__(self, body: EncoderBody) -> None:
        super().__init__()
        self.body = body

    def forward(self, **inputs: Tensor) -> Tensor:
        features: Tensor = self.body(**inputs)
        return features


class Transposed(nn.Module):
    """Uses the weight of one of its layers once more, without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.second(torch.tanh(self.first(x))))
        return torch.tanh(functional.linear(hidden, self.second.weight.T))


class Measured(Transposed):
    """Reads what a weight is like, and its values without their gradient."""

    def forward(self, x: Tensor) -> Tensor:
        weight = self.second.weight
        hidden = self.second(torch.tanh(self.first(x.to(weight))))
        with torch.no_grad():
            size = weight.norm()
        return torch.tanh(hidden) / size + torch.zeros_like(weight)[0] + weight.data[0]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("make", "falls_back"), [(Transposed, True), (Measured, False)])
def test_a_weight_that_is_used_without_its_layer(
    make: Callable[[], nn.Module], falls_back: bool, split: bool
) -> None:
    """The packed engine would not see that part of its gradient, so it falls back."""
    torch.manual_seed(0)
    body = make().double()
    segments = [
        Segment(
            Classify(nn.Linear(8, 2).double(), f"task-{i}"),
            [
                Batch({"x": torch.randn(5, 4).double()}, {"labels": torch.randint(2, (5,))}, 5)
                for _ in range(2 if split else 1)
            ],
            0.5,
        )
        for i in range(2)
    ]
    step = Step(body, segments[0], segments[1:], [segments[0].batches[0]])
    expected = oracle(step, step.end.task.head)
    engine = PackedEngine(body, EndTaskHead())
    for first in (True, False):
        step.clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            statistics = engine.step(step.end, step.auxiliaries, step.dev)
        assert_exact(statistics, expected, step, 1e-9)
        said = [str(warning.message) for warning in told]
        assert bool(said) == (first and falls_back), said
        assert all("second.weight is used outside" in message for message in said)
    assert all(p.requires_grad for p in body.parameters())


def test_falling_back_drops_the_units_that_the_stream_engine_drops() -> None:
    """So that a run resumed later, which tries to pack once more, goes on as it would have."""

    class Dropped(Transposed):
        def forward(self, x: Tensor) -> Tensor:
            return functional.dropout(super().forward(x), 0.5)

    torch.manual_seed(0)
    body, task = Dropped(), Classify(nn.Linear(8, 2))
    batch = Batch({"x": torch.randn(5, 4)}, {"labels": torch.randint(2, (5,))}, 5)
    step = Step(body, Segment(task, [batch], 1.0), [], [batch])
    found = []
    for engine in (StreamEngine(body, EndTaskHead()), PackedEngine(body, EndTaskHead())):
        torch.manual_seed(1)
        step.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine.step(step.end, [], step.dev)
        found.append([p.grad for p in step.parameters])
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_falling_back_in_a_later_pass_remembers_a_step_once() -> None:
    """Two objectives have images of different sizes; the end task's pass comes before theirs."""

    class OfImages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(1, 3, 3)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.layer(x).mean((2, 3))
            return found

    def batch(rows: int, size: int) -> Batch:
        labels = torch.arange(rows) % 2
        return Batch({"x": torch.randn(rows, 1, size, size)}, {"labels": labels}, rows)

    head = RememberingDevHead(FreshDevHead(torch.Generator()), 64)
    head.observe([torch.randn(8, 3)], [batch(8, 8)])
    engine = PackedEngine(OfImages(), head, max_rows=12)
    end, *others = (
        Segment(Classify(nn.Linear(3, 2)), [batch(rows, size)], 1 / 3, remember=rows == 8)
        for rows, size in ((8, 8), (4, 6), (4, 10))
    )
    with pytest.warns(UserWarning, match="the stream engine takes over"):
        engine.step(end, others, [batch(4, 8)])
    assert {name.partition("|")[0] for name in head.remembered()} == {"0", "1"}


@pytest.mark.parametrize("wrapper", [Scaled, WithoutRows, Unpackable])
def test_packed_falls_back_once(wrapper: Callable[[EncoderBody], nn.Module]) -> None:
    """A body without rules is trained by the stream engine: one warning, the same result."""
    model = tiny_model("bert", True)
    step = make_step(model)
    step.body = wrapper(model.body)
    step.body.train()
    expected = oracle(step, step.end.task.head)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        engine = PackedEngine(step.body, EndTaskHead())
        for _ in range(2):
            step.clear()
            statistics = engine.step(step.end, step.auxiliaries, step.dev)
    assert [str(w.message).endswith("which measures the same") for w in warned] == [True]
    assert_exact(statistics, expected, step, 1e-9)
