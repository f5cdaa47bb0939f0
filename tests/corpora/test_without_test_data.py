"""``--no-test-score``: the run has no test set, wherever it would come from."""

import json
import shutil
import sysconfig
from pathlib import Path

import pytest

from aang_core import ReadReport
from tests.support.runs import TrainConfig, read_end_task


def test_the_file_is_not_read(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"text {i}", "label": "ab"[i % 2]}) for i in range(20)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config = TrainConfig(
        train=tmp_path / "train.jsonl", test=tmp_path / "gone.jsonl", test_score=False
    )
    task, _ = read_end_task(config, ReadReport())
    assert task.test == ()
    assert task.dev


def test_the_demo_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a library of two packages, since all of them take seconds to read."""
    library = Path(sysconfig.get_path("stdlib"))
    for package in ("email", "logging"):
        shutil.copytree(library / package, tmp_path / package)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    whole, _ = read_end_task(TrainConfig(), ReadReport())
    without, _ = read_end_task(TrainConfig(test_score=False), ReadReport())
    assert whole.test
    assert without.test == ()
    assert (without.train, without.dev) == (whole.train, whole.dev)
