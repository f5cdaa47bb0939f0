"""A launcher whose runs cost nothing: their dev scores follow from the learning rate alone."""

import json
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml
from aang.assembly import read_end_task
from aang.config import resolve_training
from aang_plugin_compare.launcher import Order

from aang_core import ReadReport, load_plugins


def score_of(lr: float) -> float:
    """Best at 1e-4, and worse by 0.1 for every factor of ten."""
    return 0.9 - 0.1 * abs(math.log10(lr) + 4)


@dataclass
class FormulaLauncher:
    """Writes the files that a run of four evaluations leaves.

    Attributes:
        at_once: number of runs at the same time.
        dies_at: number of the run in which the process ends; 0 for none.
        trained: the names of all runs.
    """

    at_once: int = 1
    dies_at: int = 0
    trained: list[str] = field(default_factory=list)

    def ready(self) -> None:
        pass

    def train(self, order: Order) -> str | None:
        options = yaml.safe_load(order.options.read_text())
        self.trained.append(order.name)
        if options["lr"] > 0.5:
            return "Error: diverged"
        order.folder.mkdir(parents=True, exist_ok=True)
        (order.folder / "config.yaml").write_text(order.options.read_text())
        if len(self.trained) == self.dies_at:
            raise KeyboardInterrupt
        score = score_of(options["lr"])
        with (order.folder / "metrics.jsonl").open("w") as file:
            for step in (0, 10, 20, 30, 40):
                dev = {"macro-f1": score * step / 40}
                file.write(json.dumps({"step": step, "dev": dev, "best": True}) + "\n")
        scores = {"dev": score, "test": score - 0.1 if options["test_score"] else None}
        result = {"weighter": "static", "space": "td", "seed": options["seed"], "objectives": 1}
        result |= {"metric": {"name": "macro-f1", **scores}, "majority": scores, "best_step": 40}
        result |= {"steps": 40, "train_seconds": 1.0, "body_rows": 1280, "peak_memory_bytes": 1}
        result |= {"model": "model"}
        data = {"task": "demo", "digest": _digest(options["test_score"]), "notes": []}
        data |= {"parts": {}, "sources": {}}
        (order.folder / "data.json").write_text(json.dumps(data))
        (order.folder / "result.json").write_text(json.dumps(result))
        return None

    def end(self, order: Order) -> bool:
        return False

    def stop(self) -> None:
        pass


@cache
def _digest(test_score: bool) -> str:
    """Of the demo, with its test part or without."""
    options = {"weighter": "single-task", "test_score": test_score}
    config = resolve_training({}, options, load_plugins().registry)
    return read_end_task(config, ReadReport())[0].digest


def options_of(root: Path, run: str) -> dict[str, object]:
    """The options that a run was trained with."""
    options: dict[str, object] = yaml.safe_load((root / "logs" / f"{run}.yaml").read_text())
    return options
