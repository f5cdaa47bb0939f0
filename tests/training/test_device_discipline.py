"""A step on an accelerator: every tensor is on it, and the host waits for it once."""

from typing import Any

import pytest
import torch

from aang_core.assembly.assembly import Assembly, assemble
from aang_core.assembly.sources import prepare_sources
from aang_core.config import TrainConfig, resolve_config
from aang_core.plugins import load_plugins
from aang_core.runs.training import build_trainer
from aang_core.training.trainer import Trainer
from tests.training.pretend_device import DEVICE, Elsewhere, pretend_device

CPU = torch.device("cpu")
ROUNDS = 3
ONCE = "step_gradient.py: _judged"
"""Where a step asks for its numbers, all at once."""


def assembled(options: dict[str, Any]) -> tuple[TrainConfig, Assembly]:
    config = resolve_config({}, options)
    torch.manual_seed(config.seed)
    return config, assemble(config, prepare_sources(config, load_plugins().registry))


def rounds(trainer: Trainer) -> list[dict[str, float]]:
    """The losses of some rounds."""
    found = []
    for _ in range(ROUNDS):
        trainer.weighter.round(trainer.bench)
        found.append(dict(trainer.bench.losses.means()))
    return found


def waits_of(options: dict[str, Any]) -> dict[str, int]:
    """Train on both devices, compare, and return how often the host waited, by place."""
    here = rounds(build_trainer(*assembled(options), CPU))
    model = assembled(options)
    with pretend_device() as waits:
        trainer = build_trainer(*model, DEVICE)
        assert all(isinstance(p, Elsewhere) for p in trainer.bench.optimization.parameters)
        waits.clear()
        there = rounds(trainer)
        counted = dict(waits)
    for one, other in zip(here, there, strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    return counted


@pytest.mark.parametrize(
    "more",
    [
        {"gradients": "stream"},
        {"gradients": "packed"},
        {"gradients": "stream", "micro_batch_size": 3},
        {"gradients": "stream", "dev_head": "end-task", "task_clip": 1.0, "save_memory": True},
    ],
    ids=lambda more: " ".join(map(str, more.values())),
)
def test_a_step_waits_once(options: dict[str, Any], more: dict[str, Any]) -> None:
    """Whatever computes its gradients, with the same losses as on the CPU."""
    waits = waits_of({**options, "space": "td", "weighter": "factored", **more})
    assert waits == {ONCE: ROUNDS}
