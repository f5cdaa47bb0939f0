"""Runs that are killed, and what is left of them."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file

from tests.training.forks import Child

KILLED = -signal.SIGKILL


def everything(run: Path) -> dict[str, object]:
    """All that a run is, without what a clock says."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    result = {k: v for k, v in result.items() if k not in ("train_seconds", "peak_memory_bytes")}
    for stage in result.get("pretraining", {}).values():
        del stage["train_seconds"]
    result.get("final_fine_tuning", {}).pop("train_seconds", None)
    newest = max((run / "checkpoints").iterdir())
    return {
        "result": result,
        "weights": (run / "weights.jsonl").read_text(encoding="utf-8"),
        "metrics": (run / "metrics.jsonl").read_text(encoding="utf-8"),
        "state": (newest / "state.json").read_text(encoding="utf-8"),
        "tensors": (newest / "state.safetensors").read_bytes(),
        "model": {
            name: tensor.tolist()
            for name, tensor in load_file(run / "model" / "model.safetensors").items()
        },
    }


def assert_same_stage(run: Path, whole: Path, stage: str) -> None:
    """What a stage of pre-training has left is the same, byte by byte."""
    for name in ("metrics.jsonl", "model/model.safetensors"):
        path = Path("pretraining") / stage / name
        assert (run / path).read_bytes() == (whole / path).read_bytes()


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def after_lines(log: Path, count: int) -> Callable[[], bool]:
    return lambda: lines(log) >= count


def kill(child: Child) -> None:
    child.signal(signal.SIGKILL)
    assert child.wait() == KILLED
