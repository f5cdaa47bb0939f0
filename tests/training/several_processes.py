"""Trains with every weighter and leaves what came out in a folder; started by torchrun."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from aang_core import OptimizerSettings, TensorTask, fit

WEIGHTERS: Mapping[str, Mapping[str, Any]] = {
    "single-task": {},
    "static": {"n": 2},
    "meta-tartan": {},
    "factored": {"n": 3},
    "factored-in-draws": {"n": 2},
    "alpha-vil": {"n": 1, "tuning_steps": 2},
    "diw": {"n": 1, "tries": 2},
    "autosem": {"k": 2},
    "factored-bandit": {"k": 2, "rewind": True},
    "pcgrad": {"n": 2},
    "cagrad": {},
    "uncertainty": {"n": 2},
    "gradnorm": {},
    "dwa": {"every": 2},
    "forkmerge": {"steps": 2, "n": 2},
    "tapweight": {"pretraining_steps": 1, "fine_tuning_steps": 2, "n": 2},
}
MORE: Mapping[str, Mapping[str, Any]] = {
    "meta-tartan": {
        "dev_head": "drawn",
        "dev_head_rows": 11,
        "dev_average": 0.8,
        "task_clip": 0.5,
    },
    "factored": {"dev_head_rows": 10},
    "static": {"task_clip": 0.5},
}
"""Options of the signals; of ten remembered rows, three are the last of a step of seven."""
ROWS = 23  # no number of processes divides it


def loss(predicted: Tensor, wanted: Tensor) -> Tensor:
    return functional.cross_entropy(predicted, wanted, reduction="none")


def every_parameter(modules: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """A copy of every parameter and buffer, by the names of module and parameter."""
    return {
        f"{name}.{key}": value.clone()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


class LastState:
    """Every parameter as it is after the last round; ``fit`` puts the best state back."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._modules = modules
        self.state: dict[str, Tensor] = {}

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self.state = every_parameter(self._modules)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Nothing changes."""


def train(weighter: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Parameters, weights and signals of a short training."""
    torch.manual_seed(7)
    inputs = torch.randn(ROWS, 6, dtype=dtype)
    # Modules differ between processes at first, as if they were built without a seed.
    torch.manual_seed(7 + int(os.environ.get("RANK", "0")))
    body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8)).to(dtype)

    def task(name: str, shift: int) -> TensorTask:
        labels = (inputs.roll(shift, 1)[:, 0] > 0).long() + (inputs[:, 1] > 0).long()
        factors = {"shift": str(shift % 2)}
        head = nn.Linear(8, 3).to(dtype)
        return TensorTask(name, head, {"input": inputs}, labels, loss, factors)

    end, *others = [task(f"task-{i}", i) for i in range(4)]

    def scores() -> dict[str, float]:
        with torch.no_grad():
            return {"accuracy": 1 / float(loss(end.head(body(inputs)), end.targets).mean())}

    last = LastState({"body": body, **{t.name: t.head for t in (end, *others)}})
    result = fit(
        body,
        end,
        others,
        dev=end,
        evaluate=scores,
        weighter=weighter.removesuffix("-in-draws"),
        options=WEIGHTERS[weighter],
        steps=12,
        eval_every=6,
        batch_size=7,
        dev_batch_size=5,
        aux_batch_size=9,
        optimizer=OptimizerSettings(lr=1e-2, head_lr=1e-2),
        draws_per_step=3 if weighter.endswith("-in-draws") else 1,
        seed=3,
        observers=[last],
        **MORE.get(weighter, {}),
    )
    kinds = ("cosines", "norms", "losses")
    measured = [[*r[kind].values()] for r in result.history for kind in kinds if r.get(kind)]
    return last.state | {
        "weights": torch.tensor([*map(float, result.weights.values())], dtype=dtype),
        "signals": torch.tensor([value for step in measured for value in step], dtype=dtype),
    }


def main(folder: Path) -> None:
    rank = os.environ.get("RANK", "0")
    for weighter in WEIGHTERS:
        for dtype in (torch.float64, torch.float32):
            name = f"{weighter}-{str(dtype).removeprefix('torch.')}-{rank}"
            save_file(train(weighter, dtype), folder / f"{name}.safetensors")
    (folder / f"done-{rank}.json").write_text(json.dumps(True), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
