"""SetFit as a control, trained for a few steps on a tiny encoder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.tables import outcome, table

from aang_core import load_plugins
from benchmarks.small_task import write_task

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]


def test_the_table_shows_it(tmp_path: Path) -> None:
    pytest.importorskip("setfit", reason="setfit is in the extra 'benchmark'")
    write_task(tmp_path / "task")
    files = {part: str(tmp_path / "task" / f"{part}.jsonl") for part in ("train", "dev", "test")}
    spec = tmp_path / "spec.yaml"
    content = {
        "tasks": {"t": files},
        "methods": {"plain": {"weighter": "single-task"}},
        "seeds": [0, 1],
        "options": {
            **{"model": str(tmp_path / "task" / "encoder"), "train_rows": 24},
            **{"steps": 2, "max_length": 16},
        },
    }
    spec.write_text(json.dumps(content), encoding="utf-8")

    def run() -> str:
        command = [sys.executable, "-m", "benchmarks.setfit_control", str(spec)]
        done = subprocess.run(
            [*command, str(tmp_path / "out"), "--max-steps", "2"],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "t/setfit/seed-1: done" in run()
    assert "t/setfit/seed-1: kept" in run()
    plan = read_comparison(spec, load_plugins(environ={}).registry)
    entries = {entry.method: entry for entry in outcome(plan, tmp_path / "out")}
    assert set(entries) == {"setfit", "plain"}
    assert not entries["plain"].test
    found = entries["setfit"]
    assert (found.quick, found.drawn, len(found.test)) == (False, True, 2)
    assert "setfit" in table(list(entries.values()), "text", None)
