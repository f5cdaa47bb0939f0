"""The comparison of all methods on two tasks, as the benchmark asks ``aang compare`` for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aang_plugin_compare.control_results import QUICK_CONTROLS

from benchmarks.efficacy import METHODS, TASKS
from benchmarks.small_task import write_task

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]


def test_it_goes_on_with_the_next_call(tmp_path: Path) -> None:
    """A call of no time plans every run, and the next one trains those that it has time for."""
    data, files = tmp_path / "data", tmp_path / "files"
    write_task(files)
    (data / "s2orc-domain").mkdir(parents=True)
    for task in TASKS:
        (data / task).symlink_to(files)
        (data / "s2orc-domain" / f"{task}.1x.txt").symlink_to(files / "domain.txt")
    places = map(str, (data, files / "encoder", tmp_path / "out"))
    options = ["steps=2", "eval_every=1", "acl-arc.lr=1e-4", "precision=fp32", "max_length=16"]
    command = [
        *(sys.executable, "-m", "benchmarks.efficacy", *places),
        *("--seeds", "1", "--rows", "24", "--jobs", "2"),
        *(part for option in options for part in ("--option", option)),
    ]

    def run(minutes: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, "--minutes", str(minutes)],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            capture_output=True,
            text=True,
            check=False,
        )

    short = run(0.01)
    assert short.returncode == 0, short.stderr
    assert "runs are left; the same command goes on" in short.stderr
    whole = run(10)
    assert whole.returncode == 0, whole.stderr
    again = run(10)
    assert again.stderr.count(": kept\n") == len(METHODS) * len(TASKS)
    assert again.stdout == whole.stdout
    for task in TASKS:
        assert len((tmp_path / "out" / "data" / f"{task}-24.jsonl").read_text().splitlines()) == 24
        for method in METHODS:
            assert f"| {task} | {method} |" in whole.stdout
    config = tmp_path / "out" / "runs" / "acl-arc" / "single-task" / "seed-0" / "config.yaml"
    assert "lr: 0.0001\n" in config.read_text()
    assert len(json.loads((tmp_path / "out" / "table.json").read_text())) == 12 + 2 * len(
        QUICK_CONTROLS
    )
