"""A plug-in whose representation follows sentences, and a run whose objectives move tokens.

Started by ``torchrun``, it trains that run and leaves what came out in a folder.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from aang_core import load_plugins
from tests.docs.documents import ROOT
from tests.support.runs import Assembly, assemble, build_trainer, prepare_sources, resolve_config
from tests.support.training import ALONE, Processes, Trainer, processes_of_environment

PLUGIN = ROOT / "examples" / "plugins" / "aang_plugin_sentences.py"

SPACE = """
name: following-text
data: [task]
transform: [mask, delete, permute-sentences, infill]
representation: [bidirectional, own-sentence]
output: [denoise, end-task, simcse, consistency, pseudo-label]
"""


def write_sources(folder: Path) -> tuple[Path, Path]:
    """The file of the plug-in, and that of the space, which is written into ``folder``."""
    space = folder / "following-text.yaml"
    space.write_text(SPACE, encoding="utf-8")
    return PLUGIN, space


def exact_assembly(options: dict[str, Any], folder: Path) -> tuple[Any, Assembly]:
    """The run in double precision and without dropout, and its configuration."""
    plugin, space = write_sources(folder)
    registry = load_plugins(local=[str(plugin)]).registry
    every_text = {"consistency": {"threshold": 0.0}, "pseudo-label": {"threshold": 0.0}}
    options = {
        **options,
        "space": str(space),
        "dropout": 0.0,
        "precision": "fp32",
        "set": {**every_text, **options.get("set", {})},
    }
    config = resolve_config(options, {}, registry)
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, registry))
    assembly.model.body.double()
    assembly.model.classifier.double()
    for task in assembly.auxiliaries:
        task.head.double()
    return config, assembly


def exact_trainer(
    options: dict[str, Any], folder: Path, processes: Processes = ALONE
) -> tuple[Assembly, Trainer]:
    """The same run, ready to train."""
    _, assembly = exact_assembly(options, folder)
    return assembly, build_trainer(assembly, torch.device("cpu"), processes=processes)


def main(folder: Path) -> None:
    """Train three rounds, and save the model and the weights by the rank of the process."""
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    rank = os.environ.get("RANK", "0")
    own = folder / f"sources-{rank}"
    own.mkdir()
    processes = processes_of_environment(torch.device("cpu"))
    assembly, trainer = exact_trainer(options, own, processes)
    cosines: list[float] = []
    for _ in range(3):
        trainer.weighter.round(trainer.bench)
        assert trainer.bench.last is not None
        assert trainer.bench.last.signals is not None
        cosines += trainer.bench.last.signals.cosine.values()
    modules = {"body": assembly.model.body, "head": assembly.model.classifier}
    state = {
        f"{name}.{key}": value.clone()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    weights = torch.tensor([*trainer.weighter.weights().values()], dtype=torch.float64)
    state |= {"weights": weights, "cosines": torch.tensor(cosines, dtype=torch.float64)}
    save_file(state, folder / f"{rank}.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
