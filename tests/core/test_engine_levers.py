"""Clipping of tasks and a running mean of v, in every engine that has them, against autograd."""

import math

import pytest
import torch
from torch import Tensor, nn

from aang_core import OptimizerSettings
from tests.core.engine_checks import SIGNALS, make_step
from tests.core.engine_steps import Step, oracle, tiny_model
from tests.support.gradients import (
    UNCLIPPED,
    DevAverage,
    DevHead,
    DistributedEngine,
    EndTaskHead,
    StreamEngine,
    TaskClip,
)
from tests.support.training import ALONE, Optimization

Engine = StreamEngine | DistributedEngine


def averaged(body: nn.Module, beta: float) -> EndTaskHead:
    """The end task's own head, with a running mean of the dev gradient."""
    head = EndTaskHead()
    head.average = DevAverage(body, beta)
    return head


def engines(body: nn.Module, head: DevHead, clip: TaskClip = UNCLIPPED) -> list[Engine]:
    return [
        StreamEngine(body, head, clip=clip),
        StreamEngine(body, head, hold_end_task=False, clip=clip),
        DistributedEngine(body, head, "fp32", ALONE, clip=clip),
    ]


def gradients_of(step: Step, task: int) -> list[Tensor]:
    """A task's whole gradient by parameter of the step; zero where it does not reach."""
    segment = step.segments[task]
    parts = [
        segment.task.losses(segment.task.head, step.body(**b.inputs), b.targets)
        for b in segment.batches
    ]
    count = sum(int(p.counts.sum()) for p in parts)
    loss = torch.cat([p.sums for p in parts]).sum() / max(count, 1)
    return list(
        torch.autograd.grad(loss, step.parameters, allow_unused=True, materialize_grads=True)
    )


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("measures", [True, False])
@pytest.mark.parametrize("norm", [0.05, 1e6])
def test_each_task_is_clipped_before_it_is_weighted(
    norm: float, measures: bool, split: bool
) -> None:
    """Over the body alone; signals are of the gradients as they are, but those of their sum."""
    model = tiny_model("bert", True)
    model.body.train()
    step = make_step(model, split=split)
    of_body = set(step.of_body)
    inside = [p in of_body for p in step.parameters]
    v = _flat_v(step)
    total = [torch.zeros_like(p) for p in step.parameters]
    mixed = torch.zeros_like(v)
    clipped = 0
    for k, segment in enumerate(step.segments):
        g = gradients_of(step, k)
        flat = torch.cat([part.flatten() for part, own in zip(g, inside, strict=True) if own])
        factor = min(1.0, norm / float(flat.norm())) if flat.any() else 1.0
        clipped += factor < 1
        for so_far, part, own in zip(total, g, inside, strict=True):
            so_far.add_(part, alpha=segment.coefficient * (factor if own else 1.0))
        if k < len(step.auxiliaries):
            mixed += segment.coefficient * factor * flat
    assert clipped == (3 if norm < 1 else 0)
    expected = oracle(step, step.end.task.head)
    weight = sum(s.coefficient for s in step.auxiliaries)
    for engine in engines(step.body, EndTaskHead(), TaskClip(norm)):
        step.clear()
        statistics = engine.step(step.end, step.auxiliaries, step.dev if measures else None)
        for parameter, wanted in zip(step.parameters, total, strict=True):
            got = torch.zeros_like(wanted) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-12)
        if statistics is None:
            assert not measures
            continue
        signals = statistics.read(SIGNALS)
        assert signals.norm == pytest.approx(expected.norm, rel=1e-9)
        assert signals.dot == pytest.approx(expected.dot, rel=1e-9, abs=1e-12)
        assert signals.auxiliary["norm"] == pytest.approx(float(mixed.norm()) / weight, rel=1e-9)
        dot = float(mixed @ v) / weight
        assert signals.auxiliary["dot"] == pytest.approx(dot, rel=1e-9, abs=1e-12)


def _flat_v(step: Step) -> Tensor:
    end = step.end.task
    parts = [end.losses(end.head, step.body(**b.inputs), b.targets) for b in step.dev]
    loss = torch.cat([p.sums for p in parts]).sum() / sum(len(p.sums) for p in parts)
    gradients = torch.autograd.grad(loss, step.of_body, allow_unused=True, materialize_grads=True)
    return torch.cat([g.flatten() for g in gradients])


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_dev_gradient_is_averaged_over_steps(kind: int) -> None:
    """Three steps of different rows: dots with (β² v_1 + β v_2 + v_3) / (β² + β + 1)."""
    model = tiny_model("bert", True)
    model.body.train()
    steps = [make_step(model, seed=seed, split=seed == 1) for seed in range(3)]
    beta = 0.7
    engine = engines(model.body, averaged(model.body, beta))[kind]
    saved = averaged(model.body, beta)
    vs: list[Tensor] = []
    for step in steps:
        vs.append(_flat_v(step))
        powers = [beta ** (len(vs) - 1 - s) for s in range(len(vs))]
        mean = sum((p * v for p, v in zip(powers, vs, strict=True)), torch.zeros_like(vs[0]))
        mean = mean / sum(powers)
        step.clear()
        # Through what a checkpoint holds, every time.
        saved.load_state_dict({n: t.clone() for n, t in engine.dev_head.state_dict().items()})
        engine.dev_head.load_state_dict(saved.state_dict())
        statistics = engine.step(step.end, step.auxiliaries, step.dev)
        assert statistics is not None
        signals = statistics.read(SIGNALS)
        assert signals.dev_norm == pytest.approx(float(mean.norm()), rel=1e-9)
        for k, segment in enumerate(step.segments):
            g = torch.cat([part.flatten() for part in _body_part(step, k)])
            slack = 1e-9 * float(g.norm() * mean.norm())
            assert signals.dot[segment.task.name] == pytest.approx(float(g @ mean), abs=slack)


def _body_part(step: Step, task: int) -> list[Tensor]:
    of_body = dict(zip(step.parameters, gradients_of(step, task), strict=True))
    return [of_body[p] for p in step.of_body]


@pytest.mark.parametrize("trial", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_body_and_heads_are_clipped_apart(apart: bool, trial: bool) -> None:
    """Each is clipped to the norm; the norm returned covers all parameters."""
    body, head = nn.Linear(2, 1, bias=False), nn.Linear(1, 2, bias=False)
    settings = OptimizerSettings(lr=0.1, head_lr=0.1, max_grad_norm=1.0, clip_apart=apart)
    optimization = Optimization(body, [head], settings, 10)
    clips = optimization.trial(body, [head]) if trial else optimization
    body.weight.grad = torch.tensor([[3.0, 4.0]])
    head.weight.grad = torch.tensor([[0.3], [0.4]])
    assert float(clips.clip()) == pytest.approx(math.hypot(5.0, 0.5))
    whole = 1.0 if apart else 5.0 / math.hypot(5.0, 0.5)
    of_head = 0.5 if apart else 0.5 / math.hypot(5.0, 0.5)
    assert float(body.weight.grad.norm()) == pytest.approx(whole, rel=1e-4)
    assert float(head.weight.grad.norm()) == pytest.approx(of_head, rel=1e-4)
