"""Losses and norms without the dev gradient: the same numbers, and no dev head, no dev pass."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from tests.core.engine_checks import SIGNALS, assert_gradients, make_step
from tests.core.engine_steps import Step, oracle, tiny_model
from tests.core.test_riders import alone, with_riders
from tests.support.gradients import EndTaskHead, PackedEngine, StreamEngine, TaskClip

NORMS = frozenset({"norm"})


class NoDevHead(EndTaskHead):
    """A dev head that must not be fitted."""

    def fit(self, *given: object) -> nn.Module:
        raise AssertionError("nothing asks for the dev gradient")


def engines(body: nn.Module) -> list[StreamEngine | PackedEngine]:
    return [
        StreamEngine(body, NoDevHead()),
        PackedEngine(body, NoDevHead()),
        PackedEngine(body, NoDevHead(), max_rows=6),
    ]


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("riders", [False, True])
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_norms_need_no_dev_rows(architecture: str, riders: bool, split: bool) -> None:
    """Every norm and every ``.grad`` to 1e-9 in each engine; v has no norm."""
    model = tiny_model(architecture, True)
    model.body.train()
    step = make_step(model, split=split)
    plain = step
    if riders:
        if architecture != "bert" or split:
            pytest.skip("the packed engine takes riders on rows of one batch")
        step = with_riders(step)
        plain = alone(step)
    expected = oracle(plain, plain.end.task.head)
    for engine in engines(step.body):
        if riders and getattr(engine, "max_rows", None) is not None:
            continue
        step.clear()
        statistics = engine.step(step.end, step.auxiliaries, None, norms=True)
        assert statistics is not None
        signals = statistics.read(NORMS)
        assert signals.dev_norm is None
        assert signals.norm == pytest.approx(expected.norm, rel=1e-9, abs=1e-12)
        assert signals.auxiliary == {"norm": pytest.approx(expected.auxiliary_norm, rel=1e-9)}
        assert_gradients(step, gradients_of(step, plain, expected.gradients), 1e-9)
        assert len(engine.losses) == len(expected.norm)


def gradients_of(step: Step, plain: Step, gradients: list[Tensor | None]) -> list[Tensor | None]:
    """The expected gradients in the order of the step's own parameters."""
    by_parameter = dict(zip(plain.parameters, gradients, strict=True))
    return [by_parameter[parameter] for parameter in step.parameters]


def test_norms_are_those_of_a_step_with_the_dev_gradient() -> None:
    """With a clip, the weighted sum is that of clipped gradients, with and without v."""
    model = tiny_model("bert", True)
    model.body.train()
    step = make_step(model)
    measured = []
    for dev in (step.dev, None):
        engine = StreamEngine(step.body, EndTaskHead(), clip=TaskClip(0.5))
        step.clear()
        statistics = engine.step(step.end, step.auxiliaries, dev, norms=True)
        assert statistics is not None
        measured.append(statistics.read(SIGNALS))
    assert measured[0].norm == measured[1].norm
    assert measured[0].auxiliary["norm"] == measured[1].auxiliary["norm"]


def test_without_norms_and_dev_rows_nothing_is_measured() -> None:
    model = tiny_model("bert", True)
    step = make_step(model)
    for engine in engines(step.body):
        step.clear()
        assert engine.step(step.end, step.auxiliaries, None) is None
        losses = torch.stack([*engine.losses])
        assert bool(losses.isfinite().all())
        assert len(losses) == len(step.segments)


def test_the_dev_head_still_remembers_rows_if_it_is_told_to() -> None:
    """A diagnosis may measure between steps that ask for norms alone."""
    seen: list[int] = []

    class Remembers(NoDevHead):
        def observe(self, features: object, batches: object, *, begins: bool = True) -> None:
            seen.append(1)

    model = tiny_model("bert", True)
    step = make_step(model)
    for engine in (PackedEngine(step.body, Remembers()), StreamEngine(step.body, Remembers())):
        step.clear()
        engine.step(replace(step.end, remember=True), step.auxiliaries, None, norms=True)
    assert len(seen) == 2
