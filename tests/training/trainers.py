"""A trainer of the small task, an observer that records its calls, and what a restart is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from aang_core import load_plugins
from tests.support.runs import (
    Assembly,
    TrainConfig,
    assemble,
    build_trainer,
    prepare_sources,
    resolve_config,
)
from tests.support.training import Trainer, load_checkpoint, save_checkpoint

CPU = torch.device("cpu")


class Records:
    """Keeps what the trainer tells its observers."""

    def __init__(self) -> None:
        self.weights: list[dict[str, Any]] = []
        self.dev: list[Mapping[str, float]] = []
        self.losses: list[Mapping[str, float]] = []

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self.weights.append(json.loads(json.dumps(record)))

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        self.dev.append(dev)
        self.losses.append(losses)


def build(
    options: Mapping[str, Any], **more: Any
) -> tuple[TrainConfig, Assembly, Trainer, dict[str, nn.Module], Records]:
    config = resolve_config({}, {**options, **more})
    torch.manual_seed(config.seed)
    assembly = assemble(prepare_sources(config, load_plugins().registry))
    records = Records()
    trainer = build_trainer(assembly, CPU, [records])
    return config, assembly, trainer, dict(trainer.bench.modules), records


def assert_goes_on(options: Mapping[str, Any], folder: Path, *, rounds: int, at: int) -> Assembly:
    """A training restored from its checkpoint goes on bit by bit; a round is a step.

    Args:
        options: the options of the training.
        folder: where the checkpoint is written.
        rounds: its number of rounds.
        at: the number of rounds before the checkpoint.

    Returns:
        The assembly of the training that was not interrupted.
    """
    _, assembly, trainer, modules, _ = build(options)
    for step in range(rounds):
        if step == at:
            save_checkpoint(folder, trainer)
        trainer.weighter.round(trainer.bench)
    # Another seed, so that whatever the checkpoint failed to restore would differ.
    _, _, again, modules_again, _ = build(options, seed=99)
    load_checkpoint(folder, again)
    assert again.bench.steps == at
    for _ in range(rounds - at):
        again.weighter.round(again.bench)
    assert again.weighter.state_dict() == trainer.weighter.state_dict()
    assert again.bench.last == trainer.bench.last
    for name, module in modules.items():
        for key, value in module.state_dict().items():
            assert torch.equal(value, modules_again[name].state_dict()[key]), (name, key)
    return assembly
