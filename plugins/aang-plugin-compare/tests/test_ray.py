"""``aang compare --engine ray`` on a real cluster of two nodes, one of which dies."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters import Cluster

pytestmark = pytest.mark.full

METHODS = {"plain": {"weighter": "single-task"}, "aang": {"weighter": "factored"}}
COMPARE = [sys.executable, "-P", "-m", "aang_core", "compare"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start("a")
        made.start("b")
        yield made
    finally:
        made.close()


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    lines = [
        json.dumps({"text": f"{word} text number {i}", "label": word})
        for i in range(16)
        for word in ("alpha", "beta")
    ]
    words = tmp_path / "words.jsonl"
    words.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = {"max-length": 16, "batch-size": 4, "steps": 40, "eval-every": 20, "patience": 100}
    content = {
        # As it is written, and so from the folder that the command runs in.
        "tasks": {"words": {"train": "words.jsonl", "test": "words.jsonl"}},
        "methods": METHODS,
        "seeds": [0],
        "options": options | {"checkpoint-every": 8},
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def compare(cluster: Cluster, spec: Path, *options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMPARE, spec.name, *map(str, options)],
        cwd=spec.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
    )


def on_ray(cluster: Cluster, spec: Path, *options: object) -> "subprocess.Popen[str]":
    return compare(cluster, spec, "--engine", "ray", "--address", cluster.address, *options)


def until(process: "subprocess.Popen[str]", there: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def runs_on(root: Path, node: str) -> list[Path]:
    """The runs that a node has trained for so long that a checkpoint is behind them."""
    found = []
    for claim in root.glob("logs/*/*/*.claim.json"):
        run = root / "runs" / claim.parent.relative_to(root / "logs") / "seed-0"
        there = claim.read_text()
        log = run / "weights.jsonl"
        steps = len(log.read_text().splitlines()) if log.exists() else 0
        if there and json.loads(there)["node"].startswith(node) and 10 <= steps < 40:
            found.append(run)
    return found


def test_a_node_dies_in_the_middle(cluster: Cluster, spec: Path, tmp_path: Path) -> None:
    """Its run continues on the other node; all scores and weights equal those of one machine."""
    process = on_ray(cluster, spec, "--out", "on-ray", "--format", "json")
    root = tmp_path / "on-ray"
    until(process, lambda: bool(runs_on(root, "b")))
    (lost,) = runs_on(root, "b")
    cluster.kill("b")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    name = f"words/{lost.parent.name}/seed-0"
    assert f"{name}: lost on node b" in err
    assert "tried again" in err
    assert f"{name}: done" in err
    log = (root / "logs" / f"{name}.txt").read_text()
    assert "attempt 1 on b" in log
    assert "attempt 2 on a" in log
    process = compare(cluster, spec, "--out", "local", "--format", "json")
    expected, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert untimed(out) == untimed(expected)
    for method in METHODS:
        run = Path("runs", "words", method, "seed-0")
        for file in ("weights.jsonl", "model/model.safetensors"):
            there = (tmp_path / "local" / run / file).read_bytes()
            assert (root / run / file).read_bytes() == there, (method, file)
    assert not list(root.rglob("lock.json"))


def untimed(table: str) -> list[dict[str, Any]]:
    """The rows of a table in JSON, without what clocks say."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(table)]


def test_more_than_any_node_has(cluster: Cluster, spec: Path, tmp_path: Path) -> None:
    process = on_ray(cluster, spec, "--cpus-per-run", 9, "--gpus-per-run", 0.5)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "--cpus-per-run 9 --gpus-per-run 0.5: no node of this cluster" in err
    assert "1 CPUs and 0 GPUs" in err
    assert out == ""


def test_interrupted_it_goes_on_elsewhere(cluster: Cluster, spec: Path, tmp_path: Path) -> None:
    """A failed run is reported with node and log; an interrupt saves checkpoints."""
    content = yaml.safe_load(spec.read_text())
    broken = {"weighter": "static", "set": {"static": {"n": 0}}}
    content["methods"] = {"broken": broken, "plain": METHODS["plain"]}
    # Long enough that the interrupt, which has some processes to pass, comes before the end.
    content["options"] |= {"checkpoint-every": 1000, "steps": 1500, "patience": 1000}
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    process = on_ray(cluster, spec, "--out", "out", "--jobs", 1)
    run = tmp_path / "out" / "runs" / "words" / "plain" / "seed-0"
    until(process, (run / "weights.jsonl").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "words/broken/seed-0: Error: " in err
    assert "n is 0" in err
    assert "(exit status 2 on node a" in err
    assert "out/logs/words/broken/seed-0.txt)" in err
    assert "SIGTERM" in (tmp_path / "out" / "logs" / "words" / "plain" / "seed-0.txt").read_text()
    (checkpoint,) = (run / "checkpoints").iterdir()
    steps = json.loads((checkpoint / "state.json").read_text())["steps"]
    assert steps == len((run / "weights.jsonl").read_text().splitlines()) > 0
    process = compare(cluster, spec, "--out", "out")
    _, err = process.communicate(timeout=600)
    assert "words/plain/seed-0: done" in err
    assert len((run / "weights.jsonl").read_text().splitlines()) == 1500


def test_something_else_listens_there(spec: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = subprocess.run(
            [*COMPARE, str(spec), "--engine", "ray", "--address", address],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 2
    assert f"--address {address}: something is there, but no Ray answers" in done.stderr
    assert done.stdout == ""


def test_without_an_address_ray_is_started_here(spec: Path, tmp_path: Path) -> None:
    """Its workers import nothing from this folder; runs trained there are kept without Ray."""
    for module in ("numpy", "aang_plugin_compare", "yaml"):
        trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        (tmp_path / f"{module}.py").write_text(trap, encoding="utf-8")
    content = yaml.safe_load(spec.read_text())
    content["options"]["steps"] = 4
    content["methods"] = {"plain": METHODS["plain"]}
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [*COMPARE, spec.name, "--engine", "ray", "--cpus-per-run", "1"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "words/plain/seed-0: done" in done.stderr
    assert done.stdout.startswith("task ")
    assert not (tmp_path / "ran").exists()
    done = subprocess.run(
        [*COMPARE, spec.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "words/plain/seed-0: kept" in done.stderr
