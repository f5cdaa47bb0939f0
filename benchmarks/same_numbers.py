"""Does a change in the code leave every number unchanged? Compares small trainings of every sort.

    python -m benchmarks.same_numbers record OUT
    python -m benchmarks.same_numbers check OUT

Run the first in a checkout from before the change and the second in one from after it, on the same
machine: other processors round differently. ``record`` trains a small encoder in fourteen ways, one
of them once more with two kills, and keeps the runs in OUT with a SHA-256 of each model, log of
weights and log of scores. ``check`` trains them again, predicts with a recorded run, and resumes
one that was recorded half-way. It also prints changes in the help of commands and in the public
names, which may be intended; any other difference ends it with status 1. Each takes one to two
minutes on one core.
"""

import difflib
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

import click

from benchmarks.kills.forked import Forked, aang, import_what_a_run_needs
from benchmarks.small_kinds import KINDS, write_kinds
from benchmarks.small_task import EncoderSize, write_encoder, write_files

PUBLIC = ("aang_core", "aang", "aang_testing")

KILLS = (3, 7)
"""Lines of the log of weights after which the run is killed."""

_CLOCK = {"train_seconds", "peak_memory_bytes"}


def trainings(data: Path) -> dict[str, list[object]]:
    """The options of each training, except its data."""
    tapt = ["--set", "tapt.steps=6", "--set", "tapt.eval_every=3", "--set", "tapt.batch_size=8"]
    domain = ["--domain", data / "domain.txt"]
    factored: list[object] = ["--space", "td", "--weighter", "factored"]
    ways: dict[str, list[object]] = {
        "contrast": ["--recipe", "contrast"],
        "static td": ["--space", "td", "--weighter", "static"],
        "factored td": factored,
        "factored td+ed": ["--space", "td+ed", "--weighter", "factored", *domain],
        "factored packed": [*factored, "--gradients", "packed"],
        "meta-tartan": ["--space", "td", "--weighter", "meta-tartan"],
        "alpha-vil": ["--space", "x+y+z", "--weighter", "alpha-vil"],
        "pcgrad": ["--space", "x+y+z", "--weighter", "pcgrad"],
        "tapt+contrast": ["--recipe", "tapt+contrast", *tapt],
        "micro-batches": [*factored, "--micro-batch-size", 3],
        "draws": [*factored, "--draws-per-step", 2],
    }
    return ways | {kind: ["--space", data / "space.yaml", *factored[2:]] for kind in KINDS}


def command(data: Path, name: str, run: Path) -> list[object]:
    """The command line of a training."""
    rows = data / name if name in KINDS else data
    return [
        *("train", "--train", rows / "train.jsonl", "--dev", rows / "dev.jsonl"),
        *("--test", rows / "test.jsonl", "--model", data / "encoder", "--max-length", 48),
        *("--steps", 12, "--eval-every", 4, "--precision", "fp32", "--checkpoint-every", 0),
        *("--batch-size", 8, "--dev-batch-size", 8, "--aux-batch-size", 8, "--quiet"),
        *(*trainings(data)[name], "--out", run),
    ]


def write_data(data: Path) -> None:
    """Write the rows of each kind of task and the encoder."""
    write_files(data, {"train": 96, "dev": 40, "test": 40}, domain=80)
    size = EncoderSize(vocabulary=600, width=32, intermediate=64, positions=64)
    write_encoder(data / "encoder", size)
    write_kinds(data, data)


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of everything in a run, except times and memory figures."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    found = {"result": json.dumps(_without_clock(result), sort_keys=True).encode()}
    for name in ("model/model.safetensors", "weights.jsonl", "metrics.jsonl"):
        found[name] = (run / name).read_bytes()
    return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}


def train_all(data: Path, runs: Path, log: Path) -> dict[str, dict[str, str]]:
    """Train in all ways, the first one also with kills, and return the digests of each."""
    runs.mkdir()
    import_what_a_run_needs(command(data, "factored td", runs / "first"), runs / "modules.txt")
    found = {}
    for name in trainings(data):
        click.echo(name)
        _ended(aang(command(data, name, runs / name), log), log)
        found[name] = digests(runs / name)
    killed = runs / "killed"
    process = aang(command(data, "factored td", killed), log)
    for lines in KILLS:
        kill_after(process, killed, lines)
        if lines == KILLS[0]:
            shutil.copytree(killed, runs / "half-way")
        process = aang(["train", "--resume", killed, "--quiet"], log)
    _ended(process, log)
    found["killed"] = digests(killed)
    if found["killed"] != found["factored td"]:
        raise click.ClickException("the run that was killed is not the one that was left alone")
    return found


def kill_after(process: Forked, run: Path, lines: int) -> None:
    """Kill the process when its log of weights has ``lines`` lines."""
    weights = run / "weights.jsonl"
    while not weights.exists() or weights.read_bytes().count(b"\n") < lines:
        if process.ended():
            raise click.ClickException(f"{run} ended before it could be killed")
        time.sleep(0.005)
    process.kill()
    process.wait()


def predictions(data: Path, run: Path) -> str:
    """What ``aang predict`` prints for the test rows."""
    return _said("predict", run, data / "test.jsonl")


def surface() -> dict[str, str]:
    """The help of every command with all of its options, and the public names."""
    names = {module: "\n".join(importlib.import_module(module).__all__) for module in PUBLIC}
    overview = _said("--help")
    lines = overview.partition("Commands:\n")[2].splitlines()
    commands = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    helps = {name: _said(name, "--help") for name in commands}
    rare = {name: _said(name, "--help-all") for name in commands if "--help-all" in helps[name]}
    return {**names, "aang": overview, **helps, **rare}


def _said(*arguments: object) -> str:
    command = [sys.executable, "-m", "aang_core", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _without_clock(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_clock(v) for key, v in value.items() if key not in _CLOCK}
    return value


def _ended(process: Forked, log: Path) -> None:
    if process.wait() != 0:
        raise click.ClickException(f"a command failed, see {log}")


@click.group()
def main() -> None:
    """Train before and after a change, and compare every number."""


@main.command()
@click.argument("out", type=click.Path(exists=False, path_type=Path))
def record(out: Path) -> None:
    """Train with the code as it is and keep the runs in OUT."""
    out.mkdir(parents=True)
    write_data(out / "data")
    found = {
        "runs": train_all(out / "data", out / "runs", out / "log.txt"),
        "predictions": predictions(out / "data", out / "runs" / "factored td"),
        "surface": surface(),
    }
    (out / "recorded.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    click.echo(f"recorded {len(found['runs'])} runs in {out}")


@main.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(out: Path) -> None:
    """Train again and compare with what OUT recorded."""
    before = json.loads((out / "recorded.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder)
        log = again / "log.txt"
        after = train_all(out / "data", again / "runs", log)
        resumed = again / "half-way"
        shutil.copytree(out / "runs" / "half-way", resumed)
        _ended(aang(["train", "--resume", resumed, "--accept-changes", "--quiet"], log), log)
        before["runs"]["resumed"] = before["runs"]["killed"]
        after["resumed"] = digests(resumed)
    differ = [
        f"{run}: {name}"
        for run, files in before["runs"].items()
        for name, digest in files.items()
        if after[run][name] != digest
    ]
    if predictions(out / "data", out / "runs" / "factored td") != before["predictions"]:
        differ.append("predictions of a recorded run")
    for name, text in surface().items():
        old = before["surface"].get(name, "").splitlines()
        changed = difflib.unified_diff(old, text.splitlines(), name, name, n=0, lineterm="")
        click.echo("\n".join(changed), nl=False)
    gone = before["surface"].keys() - surface().keys()
    if differ or gone:
        raise click.ClickException("\n".join(["these differ:", *differ, *sorted(gone)]))
    click.echo(f"{len(before['runs'])} runs are the same, byte for byte")


if __name__ == "__main__":
    main()
