"""The head of a cluster is slow to start, or is lost while a comparison runs."""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from aang_core import AangError
from tests.clusters import Cluster


def test_a_node_that_takes_too_long_to_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises a bare Exception then, which would end in a traceback."""
    ray = pytest.importorskip("ray")
    engine = importlib.import_module("aang_plugin_compare.ray_engine")

    def too_late(**options: object) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", too_late)
    with (
        pytest.raises(AangError, match=r"^--engine ray: The current node timed out during"),
        engine.ray_cluster(None),
    ):
        pass


def on_ray(cluster: Cluster, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "aang_core", "compare", "spec.yaml", "--engine", "ray"]
    return subprocess.Popen(
        [*command, "--address", cluster.address, "--out", "out", "--no-quick-controls"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
    )


STEPS = 400
"""Of a run; it is in the middle of them when the head dies."""
OTHER = {"seed-0": "seed-1", "seed-1": "seed-0"}


@pytest.mark.full
def test_a_head_that_dies_and_comes_back(tmp_path: Path) -> None:
    """The same command goes on from the folder, and a run that has finished stays as it is."""
    rows = [{"text": f"{word} {i}", "label": word} for i in range(16) for word in ("on", "off")]
    (tmp_path / "words.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = {"max-length": 16, "batch-size": 4, "eval-every": 500, "checkpoint-every": 8}
    content = {
        "tasks": {"words": {"train": "words.jsonl", "test": "words.jsonl"}},
        "methods": {"plain": {"weighter": "single-task"}},
        "seeds": [0, 1],
        "options": options | {"steps": STEPS, "patience": 1000},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    runs = tmp_path / "out" / "runs" / "words" / "plain"
    cluster = Cluster(tmp_path)
    try:
        cluster.start("first")
        process = on_ray(cluster, tmp_path)
        end = time.monotonic() + 900
        while not (first := next(runs.glob("seed-*/result.json"), None)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        kept, other = first.parent, runs / OTHER[first.parent.name]  # Ray may begin with either
        while steps_of(other) <= 20:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        finished = first.stat().st_mtime_ns
        cluster.end("first")
        # Ray waits a minute for it, and then ends the command.
        process.communicate(timeout=300)
        assert process.returncode
        assert 20 < steps_of(other) < STEPS
        cluster.start("second")
        _, err = on_ray(cluster, tmp_path).communicate(timeout=900)
        assert f"words/plain/{kept.name}: kept" in err
        assert f"words/plain/{other.name}: done" in err
        assert first.stat().st_mtime_ns == finished
        assert steps_of(other) == STEPS
        log = (tmp_path / "out" / "logs" / "words" / "plain" / f"{other.name}.txt").read_text()
        assert "attempt 1 on first" in log
        assert " on second" in log
        # The command may have tried it again before it knew that the whole cluster was gone.
        assert log.count("attempt") <= 3
    finally:
        cluster.close()


def steps_of(run: Path) -> int:
    log = run / "weights.jsonl"
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
