"""``--gpus-per-run 0.5``: runs share a GPU. The node only says that it has some."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from aang_plugin_compare.claim import read_claim

from tests.clusters import Cluster

pytestmark = pytest.mark.full


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.start("a", cpus=8, gpus=2)
        yield made
    finally:
        made.close()


def devices_of_runs(root: Path) -> list[str]:
    """Which GPU each run that lives at this moment has been given."""
    devices = []
    for path in root.glob("logs/*/*/*.claim.json"):
        claim = read_claim(path)
        if claim is not None and psutil.pid_exists(claim.holders[-1].pid):
            process = psutil.Process(claim.holders[-1].pid)
            devices.append(process.environ()["CUDA_VISIBLE_DEVICES"])
    return devices


def test_two_runs_share_a_gpu_and_four_fit_on_two(cluster: Cluster, tmp_path: Path) -> None:
    """Though there are CPUs for eight, the fifth waits."""
    rows = [{"text": f"{word} {i}", "label": word} for i in range(16) for word in ("on", "off")]
    (tmp_path / "words.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    content = {
        "tasks": {"words": {"train": "words.jsonl", "test": "words.jsonl"}},
        "methods": {"plain": {"weighter": "single-task"}},
        "seeds": [0, 1, 2, 3, 4],
        "options": {"steps": 10**6, "patience": 10**6, "eval-every": 1000, "device": "cpu"},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "aang_core", "compare", "spec.yaml", "--engine", "ray"),
            *("--address", cluster.address, "--gpus-per-run", "0.5", "--out", "out"),
            "--no-quick-controls",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
    )
    try:
        end = time.monotonic() + 600
        while len(devices_of_runs(tmp_path / "out")) < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(3)  # in which a fifth would have begun
        assert sorted(devices_of_runs(tmp_path / "out")) == ["0", "0", "1", "1"]
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
