"""Trains objectives that share the end task's pass through heads that drop units.

Started by ``torchrun``, it leaves what every process has learned in a folder.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from aang_core import load_plugins
from tests.support.runs import assemble, build_trainer, prepare_sources, resolve_config
from tests.support.training import LossMeans, Processes, processes_of_environment, separate_dropout
from tests.training.several_processes import every_parameter

WEIGHTERS = ("uncertainty", "dwa", "gradnorm", "pcgrad")


def train(options: dict[str, object], processes: Processes) -> dict[str, torch.Tensor]:
    """Losses, weights and parameters after four steps."""
    config = resolve_config({}, options)
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, load_plugins().registry))
    trainer = build_trainer(assembly, torch.device("cpu"), processes=processes)
    separate_dropout(config.seed, 0, processes)
    losses = LossMeans()
    for _ in range(4):
        trainer.bench.begin_round()
        trainer.weighter.round(trainer.bench)
        losses.include(trainer.bench.losses)
    numbers = {"losses": losses.means(), "weights": trainer.weighter.weights()}
    return every_parameter(trainer.bench.modules) | {
        name: torch.tensor([*found.values()], dtype=torch.float64)
        for name, found in numbers.items()
    }


def main(folder: Path) -> None:
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    processes = processes_of_environment(torch.device("cpu"))
    for weighter in WEIGHTERS:
        made = train({**options, "weighter": weighter}, processes)
        save_file(made, folder / f"{weighter}-{processes.rank}.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
