"""A small real encoder, a real task of a few paragraphs, and the command line in this process."""

import importlib
import os
import pickle
import pkgutil
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from aang_core.cli import main
from benchmarks.small_kinds import write_kinds
from benchmarks.small_task import EncoderSize, write_encoder, write_files
from tests.training.forks import IMPORTED, Forks
from tests.training.resuming import after_lines, kill


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """A command sets the threads of the run that it resumes, for all that follow in its process."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer BERT with a masked-LM head and a WordPiece tokenizer of the task's own text."""
    folder = tmp_path_factory.mktemp("encoder")
    write_encoder(folder, EncoderSize(vocabulary=600, width=32, intermediate=64, positions=64))
    return folder


@pytest.fixture(scope="session")
def task_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``train.jsonl``, ``dev.jsonl``, ``test.jsonl`` and ``domain.txt`` of real paragraphs."""
    folder = tmp_path_factory.mktemp("paragraphs")
    write_files(folder, {"train": 96, "dev": 40, "test": 40}, domain=80)
    return folder


@pytest.fixture(scope="session")
def kind_files(task_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of train, dev and test for each kind of end task, and ``space.yaml``."""
    folder = tmp_path_factory.mktemp("kinds")
    write_kinds(folder, task_files)
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache for the tests' own tokens, out of the user's way."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("AANG_CACHE", str(folder))


@pytest.fixture(scope="session")
def controls() -> dict[bytes, Any]:
    """The control of each task that a test has trained on."""
    return {}


@pytest.fixture(autouse=True)
def _quick_ends(controls: dict[bytes, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes a run on little data most of its time and is the same in every run.

    The control is computed once for each task; nothing waits for the disk, because no test cuts the
    power; and reports are without plotly.js, which takes long to compress.
    """
    name = "aang.runs.linear_controls.linear_result"
    compute = pkgutil.resolve_name(name)

    def known(features: Any, task: Any, *given: Any) -> Any:
        key = pickle.dumps((task.train, task.dev, task.test, task.task_type, given))
        if key not in controls:
            controls[key] = compute(features, task, *given)
        return controls[key]

    monkeypatch.setattr(name, known)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr("plotly.offline.get_plotlyjs", lambda: "")


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """``aang`` in forked processes."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    made = Forks(tmp_path_factory.mktemp("forks"), cache)
    yield made
    made.close()


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Aang = Callable[..., Outcome]


@pytest.fixture(scope="session")
def _imported() -> None:
    """What trainings import, so that it does not count as time of the first one."""
    for name in IMPORTED:
        importlib.import_module(name)


@pytest.fixture
def aang(_imported: None, capsys: pytest.CaptureFixture[str]) -> Aang:
    """Run the command line in this process: ``aang("train", "--steps", 3)``."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = end.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def train_options(encoder: Path, task_files: Path) -> list[object]:
    """What trains the small task: a few steps of a few rows."""
    return [
        *("--train", task_files / "train.jsonl"),
        *("--dev", task_files / "dev.jsonl"),
        *("--test", task_files / "test.jsonl"),
        *("--model", encoder),
        *("--space", "td"),
        *("--max-length", 48),
        *("--steps", 6),
        *("--eval-every", 3),
        *("--batch-size", 8),
        *("--dev-batch-size", 8),
        *("--aux-batch-size", 8),
    ]


@pytest.fixture(scope="session")
def domain(task_files: Path) -> list[object]:
    """The in-domain text, for spaces that read it."""
    return ["--domain", task_files / "domain.txt"]


@pytest.fixture(scope="session")
def small(train_options: list[object]) -> list[object]:
    """``aang train`` on few objectives, with a checkpoint after every round."""
    return [
        *("train", *train_options, "--space", "x+y+z", "--steps", 16, "--eval-every", 4),
        *("--checkpoint-every", 0, "--quiet"),
    ]


@pytest.fixture(scope="session")
def whole(forks: Forks, small: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of :func:`small` that nobody interrupts."""
    run = tmp_path_factory.mktemp("whole") / "run"
    child = forks.aang(*small, "--out", run)
    assert child.wait() == 0, child.said
    return run


@pytest.fixture(scope="session")
def killed(forks: Forks, small: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of :func:`small`, killed in the middle; a test resumes a copy of it."""
    run = tmp_path_factory.mktemp("killed") / "run"
    child = forks.aang(*small, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 6))
    kill(child)
    return run


@pytest.fixture
def interrupted(killed: Path, tmp_path: Path) -> Path:
    """A copy of the run that was killed."""
    return shutil.copytree(killed, tmp_path / "run")


@pytest.fixture
def options(encoder: Path, task_files: Path) -> dict[str, Any]:
    return {
        "train": task_files / "train.jsonl",
        "dev": task_files / "dev.jsonl",
        "model": str(encoder),
        "max_length": 48,
        "steps": 8,
        "eval_every": 4,
        "batch_size": 8,
        "dev_batch_size": 8,
        "aux_batch_size": 8,
    }
