"""Every kind of end task in several processes, in small batches, and killed and resumed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.small_kinds import KINDS
from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.launching import children, finished, flat, launch, lines
from tests.training.resuming import after_lines, everything, kill
from tests.training.trainers import assert_goes_on

UNMASKED = """\
name: unmasked
summary: objectives that draw nothing, so that batches of any size see the same rows
data: [{data}]
transform: [no-op]
representation: [bidirectional, left-to-right]
output: [end-task, next-token]
"""
SMALL_BATCHES: list[object] = ["--micro-batch-size", 3]
"""Not with objectives over ``end-task-rows``, which need the rows of a step in one pass."""

Options = Callable[[str], list[object]]


@pytest.fixture(scope="session")
def kind_command(kind_files: Path, task_files: Path, encoder: Path) -> Options:
    """What trains the small task of a kind: a few steps of a few rows, without dropout, which
    each process draws for itself. The dev head forgets rows from the third step on."""

    def options(kind: str) -> list[object]:
        folder = kind_files / kind if kind in KINDS else task_files
        return [
            *("train", "--model", encoder, "--dropout", 0, "--precision", "fp32"),
            *(
                a
                for part in ("train", "dev", "test")
                for a in (f"--{part}", folder / f"{part}.jsonl")
            ),
            *("--weighter", "factored", "--set", "factored.n=4", "--max-length", 32),
            *("--steps", 5, "--eval-every", 5, "--batch-size", 7, "--dev-batch-size", 7),
            *("--aux-batch-size", 8, "--dev-head-rows", 16, "--quiet"),
        ]

    return options


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(
            [("token-labels", "whole"), *((kind, "small") for kind in KINDS)],
            marks=pytest.mark.full,
        ),
        pytest.param(
            [
                *(("single-label", "whole"), ("single-label", "small")),
                *(("multi-label", "whole"), ("regression", "whole")),
            ],
            marks=pytest.mark.release,
        ),
    ],
    ids=["some", "others"],
)
def test_any_number_of_processes_and_rows_at_once(
    aang: Aang, kind_command: Options, tmp_path: Path, cases: list[tuple[str, str]]
) -> None:
    """Two processes, in small batches or not, log and train what one process does."""
    spaces = {"whole": "task, end-task-rows", "small": "task"}
    for case, data in spaces.items():
        (tmp_path / f"{case}.yaml").write_text(UNMASKED.format(data=data), encoding="utf-8")
    alone: dict[Path, list[object]] = {}
    shared: dict[Path, list[object]] = {}
    for kind, case in cases:
        run, more = tmp_path / kind / case, SMALL_BATCHES if case == "small" else []
        command = [*kind_command(kind), "--space", tmp_path / f"{case}.yaml"]
        alone[run] = [*command, "--out", run / "alone"]
        shared[run] = [*command, *more, "--out", run / "shared"]
    file = tmp_path / "commands.json"
    file.write_text(json.dumps([[*map(str, line)] for line in shared.values()]), encoding="utf-8")
    done = finished(launch(2, file, module="tests.training.command_lines"))
    assert done.returncode == 0, done.stderr
    for run, command in alone.items():
        assert aang(*command).status == 0
        assert_alike(run / "shared", run / "alone")


def assert_alike(run: Path, expected: Path) -> None:
    """Logs, scores and the trained model are the same but for rounding."""
    for name in ("weights.jsonl", "metrics.jsonl"):
        for one, two in zip(lines(expected / name), lines(run / name), strict=True):
            assert _steady(two) == pytest.approx(_steady(one), abs=1e-5), (run, name)
    models = [load_file(r / "model" / "model.safetensors") for r in (run, expected)]
    for name, value in models[1].items():
        torch.testing.assert_close(models[0][name], value, rtol=0, atol=1e-5)


def _steady(line: dict[str, Any]) -> dict[str, float]:
    """The numbers of a line without the correlations of regression.

    These divide by the spread of the predictions. After five steps all predictions are nearly
    alike, so rounding moves a correlation by more than 1e-5 and r2 and rmse, which are of the same
    predictions, by less than 1e-9.
    """
    return {k: v for k, v in flat(line).items() if k not in ("/dev/pearson", "/dev/spearman")}


@pytest.fixture
def saving(kind_command: Options, kind_files: Path) -> Options:
    """With dropout and masks, and a checkpoint after every round."""

    def options(kind: str) -> list[object]:
        return [
            *(*kind_command(kind), "--dropout", 0.1, "--space", kind_files / "space.yaml"),
            *("--steps", 12, "--eval-every", 3, "--checkpoint-every", 0),
        ]

    return options


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_goes_on_from_a_checkpoint(
    options: dict[str, Any], kind_files: Path, tmp_path: Path, kind: str
) -> None:
    """Bit by bit, with dropout, masks and signals. One class a text: test_trainer.py."""
    files = {part: kind_files / kind / f"{part}.jsonl" for part in ("train", "dev")}
    more = {"space": str(kind_files / "space.yaml"), "weighter": "factored", "max_length": 32}
    more |= {"set": {"factored": {"n": 4}}, "dev_head_rows": 16}
    assert_goes_on({**options, **files, **more}, tmp_path / "checkpoint", rounds=6, at=4)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_resumed(
    aang: Aang, forks: Forks, saving: Options, tmp_path: Path, kind: str
) -> None:
    """Whatever it leaves is the same, bit for bit. One class a text: test_resume.py."""
    options = saving(kind)
    assert aang(*options, "--out", tmp_path / "whole").status == 0
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 3))
    kill(child)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


@pytest.mark.release
@pytest.mark.parametrize("kind", ["single-label", *KINDS])
def test_two_processes_killed_and_resumed(saving: Options, tmp_path: Path, kind: str) -> None:
    """Bit for bit, because two processes add up in one order alone."""
    options = saving(kind)
    done = finished(launch(2, *options, "--out", tmp_path / "whole"))
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    command = launch(2, *options, "--out", run)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as launcher:
        while launcher.poll() is None and not after_lines(run / "weights.jsonl", 3)():
            time.sleep(0.005)
        for pid in (launcher.pid, *children(launcher.pid)):
            os.kill(pid, signal.SIGKILL)
    assert not (run / "result.json").exists()
    done = finished(launch(2, "train", "--resume", run, "--quiet"))
    assert done.returncode == 0, done.stderr
    assert everything(run) == everything(tmp_path / "whole")
