"""Steps of a tiny model, and what every engine must make of them."""

import pytest
import torch
from torch import Tensor

from tests.core.engine_steps import (
    Classify,
    Denoise,
    Expected,
    Step,
    text_batch,
)
from tests.support.gradients import GradientStatistics, Segment
from tests.support.model import TextModel

SIGNALS = frozenset({"cosine", "dot", "norm"})


def make_step(
    model: TextModel,
    *,
    objectives: int = 3,
    rows: tuple[int, ...] = (3, 1, 2, 4),
    tokens: tuple[int, ...] = (7, 5, 9, 6),
    kinds: tuple[str, ...] = ("all", "before", "random", "all"),
    selected: tuple[float, ...] = (0.3, 0.5, 0.0, 0.3),
    coefficients: tuple[float, ...] = (0.4, 0.3, 0.0, 0.2),
    split: bool = False,
    seed: int = 0,
) -> Step:
    """Denoising and classifying objectives in turn; one row each at least."""
    generator = torch.Generator().manual_seed(seed)
    segments = []
    for i in range(objectives):
        j = i % len(rows)
        sizes = (rows[j], 2) if split and i % 2 == 0 else (rows[j],)
        batches = [
            text_batch(n, tokens[j] + k, generator, kind=kinds[j], selected=selected[j])
            for k, n in enumerate(sizes)
        ]
        task = (
            Denoise(model.heads.language_model(), f"denoise-{i}")
            if i % 2 == 0
            else Classify(model.heads.classification(), f"classify-{i}")
        )
        task.head.to(next(model.body.parameters()).dtype)
        segments.append(Segment(task, batches, coefficients[j]))
    end = Classify(model.classifier)
    end_sizes = [(3, 8), (2, 6)] if split else [(4, 8)]
    dev_sizes = [(2, 5), (3, 7)] if split else [(3, 6)]
    return Step(
        model.body,
        Segment(end, [text_batch(n, t, generator) for n, t in end_sizes], 0.5),
        segments,
        [text_batch(n, t, generator) for n, t in dev_sizes],
    )


def assert_exact(
    statistics: GradientStatistics | None, expected: Expected, step: Step, tolerance: float
) -> None:
    assert statistics is not None
    signals = statistics.read(SIGNALS)
    scale = max(1e-300, expected.dev_norm)
    for name, norm in expected.norm.items():
        # A dot product cancels; what is exact is its error against the product of the norms.
        slack = tolerance * norm * scale
        assert signals.dot[name] == pytest.approx(expected.dot[name], rel=tolerance, abs=slack)
        assert signals.norm[name] == pytest.approx(norm, rel=tolerance, abs=tolerance * 1e-3)
        cosine = expected.dot[name] / (norm * scale) if norm else 0.0
        assert signals.cosine[name] == pytest.approx(cosine, rel=tolerance, abs=tolerance)
    slack = tolerance * expected.auxiliary_norm * scale
    assert signals.auxiliary["dot"] == pytest.approx(
        expected.auxiliary_dot, rel=tolerance, abs=slack
    )
    assert signals.auxiliary["norm"] == pytest.approx(
        expected.auxiliary_norm, rel=tolerance, abs=tolerance * 1e-3
    )
    assert signals.dev_norm == pytest.approx(expected.dev_norm, rel=tolerance)
    assert_gradients(step, expected.gradients, tolerance)


def assert_gradients(step: Step, expected: list[Tensor | None], tolerance: float) -> None:
    whole = torch.cat([g.flatten() for g in expected if g is not None])
    for parameter, gradient in zip(step.parameters, expected, strict=True):
        if gradient is None:
            assert parameter.grad is None or not parameter.grad.any()
        elif parameter.grad is None:
            assert not gradient.any()
        else:
            slack = tolerance * whole.abs().max().item() * 1e-2
            torch.testing.assert_close(parameter.grad, gradient, rtol=tolerance, atol=slack)
