"""Trackers that are not there, cannot write, or get what a training measures."""

from pathlib import Path

import pytest
from aang_plugin_tracking.trackers import Tracker, check_trackers

from aang_core import ConfigError
from tests.support.plugins import StorageError


def test_a_tracker_that_is_not_there_is_refused() -> None:
    check_trackers(["tensorboard"])
    with pytest.raises(ConfigError, match=r"--log nobody: there is no such tracker; there are .*"):
        check_trackers(["nobody"])
    with pytest.raises(ConfigError, match="--log clearml: is not installed; pip install clearml"):
        check_trackers(["clearml"])


def test_a_tracker_that_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "trackers").write_text("a file where a folder belongs", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write .*trackers: "):
        Tracker(["tensorboard"], tmp_path, {"steps": 1})


def test_scalars_of_a_training(tmp_path: Path) -> None:
    """Weights, losses, cosines and dev scores are in the tracker's file."""
    tracker = Tracker(["tensorboard"], tmp_path, {"steps": 1, "domain": ["a"], "out": "x"})
    record = {"end_task_weight": 0.5, "weights": {"a": 0.25}, "losses": {"a": 2.0}}
    tracker.after_round(1, record)
    tracker.after_evaluation(1, {"macro-f1": 0.75}, True, {})
    tracker.close()
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("events.*"))
    for tag in (b"weight/end-task", b"weight/a", b"loss/a", b"dev/macro-f1"):
        assert tag in written, tag
