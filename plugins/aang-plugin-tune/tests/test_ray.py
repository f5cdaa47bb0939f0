"""``aang tune --engine ray`` on a real cluster."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import Cluster

pytestmark = pytest.mark.release

SEARCH = ["--search", "lr=1e-3,5e-4,1e-9", "--prune-after", "1", "--format", "json"]
SIZE = ["--max-length", "16", "--batch-size", "4", "--weighter", "single-task", "--steps", "40"]
MORE = ["--eval-every", "5", "--patience", "99", "--checkpoint-every", "0"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Cluster(folder)
    try:
        made.start("a")
        yield made
    finally:
        made.close()


@pytest.fixture
def task(tmp_path: Path) -> list[str]:
    """Options of ``aang train``: which of two words does a text begin with?"""
    parts = []
    for part in ("train", "dev", "test"):
        lines = [
            json.dumps({"text": f"{word} {part} number {i}", "label": word})
            for i in range(12)
            for word in ("alpha", "beta")
        ]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        parts += [f"--{part}", str(tmp_path / f"{part}.jsonl")]
    return ["--", *parts, *SIZE, *MORE]


def tune(cluster: Cluster, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "aang_core", "tune", *SEARCH, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
    )


def test_interrupted_on_ray_it_ends_as_on_one_machine(
    cluster: Cluster, task: list[str], tmp_path: Path
) -> None:
    """The trials, pruned ones among them, and the refit are the same."""
    there, here = tmp_path / "ray", tmp_path / "local"
    on_ray = ["--engine", "ray", "--address", cluster.address, "--out", there]
    process = tune(cluster, *on_ray, *task)
    log = there / "runs" / "trial-1" / "weights.jsonl"
    end = time.monotonic() + 600
    while not log.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "aang tune --search" in err
    assert not (there / "chosen.json").exists()
    assert not list(there.rglob("lock.json"))
    process = tune(cluster, *on_ray, *task)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "trial-0" not in err, "it had finished"
    claims = [json.loads(claim.read_text()) for claim in there.rglob("*.claim.json")]
    assert claims
    assert {claim["node"].partition(" ")[0] for claim in claims} == {"a"}
    process = tune(cluster, "--out", here, *task)
    expected, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert untimed(out) == untimed(expected)
    assert sum(row["pruned"] for row in json.loads(out)["methods"]) > 0
    (refit,) = json.loads(out)["refits"]
    for file in ("weights.jsonl", "model/model.safetensors"):
        assert (there / refit["run"] / file).read_bytes() == (
            here / refit["run"] / file
        ).read_bytes()


def untimed(table: str) -> dict[str, Any]:
    """The table in JSON, without what clocks say."""
    return {name: value for name, value in json.loads(table).items() if name != "seconds"}
