"""A trainer of the small task, and an observer that records its calls."""

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from aang_core.assembly.assembly import Assembly, assemble
from aang_core.assembly.sources import prepare_sources
from aang_core.config import TrainConfig, resolve_config
from aang_core.plugins import load_plugins
from aang_core.runs.training import build_trainer
from aang_core.training.trainer import Trainer

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
    assembly = assemble(config, prepare_sources(config, load_plugins().registry))
    records = Records()
    trainer = build_trainer(config, assembly, CPU, [records])
    return config, assembly, trainer, dict(trainer.bench.modules), records
