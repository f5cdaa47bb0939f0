"""Full disks, folders that cannot be written, too little memory."""

import logging
import os
import signal
from pathlib import Path

import pytest

from tests.support.plugins import StorageError
from tests.support.storage import write_file, write_folder, writing
from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.resuming import everything

BIG = 60_000
"""Bytes; a checkpoint and a model of the small encoder have more, no other file of a run has."""


def test_a_full_disk_leaves_the_last_checkpoint(
    aang: Aang, forks: Forks, interrupted: Path, whole: Path
) -> None:
    """With room again the run ends as if nothing had been."""
    checkpoints = interrupted / "checkpoints"
    kept = sorted(p for p in checkpoints.iterdir() if p.name.isdecimal())
    child = forks.aang("train", "--resume", interrupted, "--quiet", largest_file=BIG)
    assert child.wait() == 2, child.said
    assert sorted(checkpoints.iterdir()) == kept
    done = aang("train", "--resume", interrupted, "--quiet")
    assert done.status == 0, done.err
    assert everything(interrupted) == everything(whole)


def test_a_disk_that_is_full_at_the_first_checkpoint(
    aang: Aang, forks: Forks, small: list[object], whole: Path, tmp_path: Path
) -> None:
    """Told with what, why and what to do; with room again the run ends as if nothing had been."""
    run = tmp_path / "run"
    child = forks.aang(*small, "--out", run, largest_file=BIG)
    assert child.wait() == 2, child.said
    assert "Traceback" not in child.said
    assert f"cannot write {run / 'checkpoints'}: File too large" in child.said
    assert f"aang train --resume {run}" in child.said
    assert not list(run.rglob(".*.tmp")), "a full disk is not filled further"
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(whole)


@pytest.mark.full
def test_a_log_that_cannot_grow(
    aang: Aang,
    forks: Forks,
    small: list[object],
    whole: Path,
    tmp_path: Path,
) -> None:
    """The line that was half written when the disk was full is not there in the end."""
    run = tmp_path / "run"
    child = forks.aang(*small, "--checkpoint-every", 1000, "--out", run, largest_file=6000)
    assert child.wait() == 2, child.said
    assert f"cannot write {run / 'weights.jsonl'}: File too large" in child.said
    assert (run / "weights.jsonl").stat().st_size == 6000
    done = aang("train", "--resume", run, "--quiet", "--on-nan", "skip")
    assert done.status == 0, done.err
    assert everything(run) == everything(whole)


@pytest.mark.full
def test_a_model_that_cannot_be_written(
    aang: Aang,
    forks: Forks,
    small: list[object],
    whole: Path,
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    child = forks.aang(*small, "--checkpoint-every", 1000, "--out", run)
    child.when((run / "evaluation.json").exists)
    child.signal(signal.SIGKILL)
    child.wait()
    assert not (run / "result.json").exists()
    size = max(p.stat().st_size for p in (run / "checkpoints").rglob("state.safetensors"))
    assert size > BIG
    limits = (whole / "model" / "model.safetensors").stat().st_size - 1000
    child = forks.aang("train", "--resume", run, "--quiet", largest_file=limits)
    assert child.wait() == 2, child.said
    assert "File too large" in child.said
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(whole)


@pytest.mark.parametrize("place", ["file/run", "/proc/run"])
def test_a_place_where_nothing_can_be_made(
    aang: Aang, train_options: list[object], tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    done = aang("train", *train_options, "--out", tmp_path / place)
    assert done.status == 2
    assert "cannot make the run folder" in done.err
    assert "Traceback" not in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(mode=0o555)
    done = aang("train", *train_options, "--out", run)
    assert done.status == 2
    assert "Make it writable" in done.err


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    """A file or folder keeps what it had before."""
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*: Is a directory"), writing(taken):
        write_file(taken, "text")
    write_folder(tmp_path / "folder", lambda to: _fill(to, "old"))
    with pytest.raises(NotADirectoryError):
        write_folder(tmp_path / "folder", lambda to: _fill(to / "name" / "below", "new"))
    assert (tmp_path / "folder" / "name").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "taken"]


def _fill(folder: Path, text: str) -> None:
    if folder.name == "below":
        folder.parent.write_text(text)
        (folder / "more").write_text(text)
    (folder / "name").write_text(text)


def test_a_bad_number_stops_a_run_that_goes_on_with_another_policy(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rate that sends the model to infinity: stopped, then resumed with the policy changed."""
    run = tmp_path / "run"
    options = [
        *("train", *train_options, "--space", "x+y+z", "--weighter", "static", "--quiet"),
        *("--steps", 12, "--lr", 1e30, "--head-lr", 1e30, "--warmup", 0.5, "--out", run),
    ]
    done = aang(*options)
    assert done.status == 2
    assert "is not finite" in done.err or " is nan" in done.err or " is inf" in done.err
    assert f"aang train --resume {run}" in done.err
    lines = (run / "weights.jsonl").read_bytes().count(b"\n")
    assert f"step {lines + 1}: " in done.err
    again = aang("train", "--resume", run, "--quiet")
    assert again.status == 2
    assert again.err == done.err, "the same step fails the same way"
    with caplog.at_level(logging.WARNING):
        aang("train", "--resume", run, "--quiet", "--on-nan", "skip")
    assert f"step {lines + 1} is left out" in caplog.text
    assert "on_nan: skip" in (run / "config.yaml").read_text(encoding="utf-8")
