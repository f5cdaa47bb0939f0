"""Runs that are interrupted and go on: the end is the same, bit for bit."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.training.conftest import Aang


def everything(run: Path) -> dict[str, object]:
    """All that a run is, without what a clock says."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    result = {k: v for k, v in result.items() if k not in ("train_seconds", "peak_memory_bytes")}
    for stage in result.get("pretraining", {}).values():
        del stage["train_seconds"]
    return {
        "result": result,
        "weights": (run / "weights.jsonl").read_text(encoding="utf-8"),
        "metrics": (run / "metrics.jsonl").read_text(encoding="utf-8"),
        "model": {
            name: tensor.tolist()
            for name, tensor in load_file(run / "model" / "model.safetensors").items()
        },
    }


def killed(arguments: list[object], run: Path, lines: int) -> None:
    """Run ``aang`` in a process of its own and kill it once ``lines`` rounds are logged."""
    command = [sys.executable, "-m", "aang_core", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = run / "weights.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= lines:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("weighter", ["factored", "alpha-vil"])
def test_killed_and_resumed(
    aang: Aang, train_options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Killed twice, at different places, with a checkpoint after every round."""
    by_rounds = ["--set", "alpha-vil.n=2", "--set", "alpha-vil.fraction=0.1"]
    options = [
        *("train", *train_options, "--weighter", weighter, "--steps", 60, "--eval-every", 5),
        *("--checkpoint-every", 0, "--dev-head", "remembered", "--quiet"),
        *(by_rounds if weighter == "alpha-vil" else []),
    ]
    whole = aang(*options, "--out", tmp_path / "whole")
    assert whole.status == 0, whole.err
    run = tmp_path / "run"
    killed([*options, "--out", run], run, 2)
    killed(["train", "--resume", run, "--quiet"], run, 6)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


def test_finished_stages_are_kept(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    """Killed after the first stage: what comes after it follows as if nothing had been."""
    options = ["train", *train_options, "--recipe", "dapt+tapt", "--steps", 12, "--quiet"]
    whole = aang(*options, "--out", tmp_path / "whole")
    assert whole.status == 0, whole.err
    run = tmp_path / "run"
    killed([*options, "--out", run], run, 1)
    stage = run / "pretraining" / "dapt" / "stage.json"
    written = stage.stat().st_mtime_ns
    (run / "pretraining" / "tapt" / "stage.json").unlink()
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert stage.stat().st_mtime_ns == written
    assert everything(run) == everything(tmp_path / "whole")


def test_bad_input(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    done = aang("train", "--resume", tmp_path)
    assert done.status == 2
    assert "no run folder" in done.err
    run = tmp_path / "run"
    assert aang("train", *train_options, "--steps", 1, "--out", run).status == 0
    done = aang("train", "--resume", run)
    assert done.status == 2
    assert "has finished" in done.err
    done = aang("train", "--resume", run, "--steps", 3)
    assert done.status == 2
    assert "leave the others out" in done.err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_at_the_next_boundary(
    aang: Aang, train_options: list[object], tmp_path: Path, number: int, status: int
) -> None:
    """With a checkpoint, the command to go on, and an exit status that says which signal."""
    options = ["train", *train_options, "--steps", 60, "--eval-every", 5, "--quiet"]
    run = tmp_path / "run"
    command = [sys.executable, "-m", "aang_core", *map(str, options), "--out", str(run)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    log = run / "weights.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.002)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == status, errors
    assert f"aang train --resume {run}" in errors
    assert not (run / "result.json").exists()
    newest = max((run / "checkpoints").iterdir())
    state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    assert state["steps"] == log.read_bytes().count(b"\n") < 60
    whole = aang(*options, "--out", tmp_path / "whole")
    assert whole.status == 0, whole.err
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


def test_asked_twice_it_stops_at_once(train_options: list[object], tmp_path: Path) -> None:
    """In the middle of a round of αVIL that would take long; the folder can still be resumed."""
    options = [
        *("train", *train_options, "--weighter", "alpha-vil", "--steps", 10**6),
        *("--patience", 10**6, "--quiet"),
    ]
    run = tmp_path / "run"
    command = [sys.executable, "-m", "aang_core", *map(str, options), "--out", str(run)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    log = run / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not log.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode not in (0, None)
    assert not (run / "result.json").exists()
    assert (run / "config.yaml").exists()
