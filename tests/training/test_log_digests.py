"""Logs that have changed are noticed on resume, and written again or refused."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from aang_core import DataError, OptimizerSettings, TaskCard, TensorTask
from tests.support.storage import RunFolder
from tests.support.training import (
    Checkpointer,
    Interruption,
    RowBudget,
    RunTasks,
    Schedule,
    SingleTask,
    StepSettings,
    Trainer,
    TrainingSettings,
    make_trainer,
)

LOG = "metrics.jsonl"


def trainer() -> Trainer:
    x = torch.linspace(-1, 1, 13).unsqueeze(1)
    error = nn.CrossEntropyLoss(reduction="none")
    end = TensorTask("end", nn.Linear(4, 2), {"input": x}, (x.flatten() > 0).long(), error)
    settings = TrainingSettings(
        OptimizerSettings(0.01, 0.01), Schedule(12, 4, 40, "accuracy"), StepSettings(ROWS), 0
    )
    return make_trainer(
        *(nn.Linear(1, 4), RunTasks(end, end, []), SingleTask(TaskCard("end"), []), settings),
        evaluate=lambda: {"accuracy": 0.5},
    )


ROWS = RowBudget(5, 4, 6)


def checkpointer_in(run: Path) -> Checkpointer:
    """What saves and restores the checkpoints of a training in the folder ``run``."""
    (run / "config.yaml").touch()
    return Checkpointer(
        RunFolder(run), "checkpoints", (LOG,), seconds=1e9, interruption=Interruption()
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a checkpoint after each of the first two lines of its log, and a third line."""
    saved = trainer()
    checkpointer = checkpointer_in(tmp_path)
    for step in (1, 2):
        RunFolder(tmp_path).append(LOG, {"step": step, "dev": 0.25})
        saved.bench.steps = step
        checkpointer.save(saved)
    RunFolder(tmp_path).append(LOG, {"step": 3, "dev": 0.75})
    return tmp_path


def load(run: Path) -> int:
    """Resume it; the number of lines that are left must be that of its steps."""
    resumed = trainer()
    checkpointer_in(run).load(resumed)
    assert len((run / LOG).read_text().splitlines()) == resumed.bench.steps
    return resumed.bench.steps


def test_lines_after_the_checkpoint_are_cut_off(run: Path) -> None:
    assert load(run) == 2


def flip(line: int) -> Callable[[bytes], bytes]:
    def edit(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        lines[line] = lines[line].replace(b"0.25", b"0.65")
        return b"".join(lines)

    return edit


@pytest.mark.parametrize(
    "edit", [flip(1), lambda c: b"".join(c.splitlines(keepends=True)[:1])], ids=["digit", "cut"]
)
def test_what_the_checkpoint_before_does_not_need_is_written_again(
    run: Path, edit: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    (run / LOG).write_bytes(edit((run / LOG).read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert load(run) == 1
    assert "000002 is damaged: " in caplog.text
    assert "going on from" in caplog.text


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (flip(0), "the checksum of metrics.jsonl is wrong"),
        (lambda c: c[:5], "metrics.jsonl has 5 bytes instead of"),
        (None, "metrics.jsonl is missing"),
    ],
    ids=["digit", "cut", "missing"],
)
def test_what_every_checkpoint_needs_is_an_error(
    run: Path, edit: Callable[[bytes], bytes] | None, what: str
) -> None:
    if edit is None:
        (run / LOG).unlink()
    else:
        (run / LOG).write_bytes(edit((run / LOG).read_bytes()))
    with pytest.raises(DataError, match=what) as error:
        load(run)
    assert "Remove that folder to start again" in str(error.value)
