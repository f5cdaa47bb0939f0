"""Trainings before and after a change are compared, and a difference is named."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import same_numbers

pytestmark = pytest.mark.release


def test_other_rows_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        same_numbers,
        "trainings",
        lambda data: {"factored td": ["--space", "td", "--weighter", "factored"]},
    )
    out = tmp_path / "out"

    def said(command: str) -> tuple[int, str]:
        done = CliRunner().invoke(same_numbers.main, [command, str(out)])
        return done.exit_code, done.output

    status, words = said("record")
    assert status == 0, words
    status, words = said("check")
    assert status == 0, words
    assert words.endswith("3 runs are the same, byte for byte\n")
    rows = (out / "data" / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "data" / "train.jsonl").write_text("".join(reversed(rows)), encoding="utf-8")
    status, words = said("check")
    assert status == 1
    assert "factored td: model/model.safetensors\nfactored td: weights.jsonl" in words
