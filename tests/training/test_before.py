"""What a run says before its first step, and ``--dry-run``, which stops there."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.conftest import Aang


@pytest.fixture
def repeating(task_files: Path, tmp_path: Path) -> list[object]:
    """Training data that repeats itself: in dev, and twice with another label."""
    rows = [json.loads(line) for line in (task_files / "train.jsonl").read_text().splitlines()]
    labels = sorted({row["label"] for row in rows})
    others = [row | {"label": next(n for n in labels if n != row["label"])} for row in rows[:2]]
    dev = [json.loads(line) for line in (task_files / "dev.jsonl").read_text().splitlines()]
    for name, part in (("train", [*rows, *others]), ("dev", [*dev, *rows[5:8]])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return ["--train", tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl"]


def test_the_summary_and_every_warning_come_before_the_first_step(
    aang: Aang, train_options: list[object], repeating: list[object], tmp_path: Path
) -> None:
    done = aang("train", *train_options, *repeating, "--max-length", 16, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    lines = done.err.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("step 0:"))
    before, after = lines[:first], lines[first:]
    words = {line.split("  ")[0]: line for line in before}
    assert "98 train, 43 dev, 40 test" in words["task"]
    assert "3 of dev in train too" in words["overlaps"]
    assert "2 texts (4 rows) have different labels" in words["duplicates"]
    assert "% " not in words["cut to 16"]
    assert " of 98 of train (" in words["cut to 16"]
    assert "24 of td, weighted by factored" in words["objectives"]
    assert "8 of dev for the dev gradient" in words["a step"]
    warnings = [line for line in before if line.startswith("note: ")]
    assert any("dev text that is also in" in line for line in warnings)
    assert any("text longer than 16 tokens, cut; train" in line for line in warnings)
    assert not [line for line in after if line.startswith("note: ")]


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("contrast", "8 end-task rows, which the objective also reads; at most"),
        (
            "td+c",
            "8 end-task rows, which 1 objective also reads, 8 of all other sampled objectives",
        ),
        ("td-labels", "8 end-task rows, 8 of all sampled objectives; at most"),
    ],
)
def test_rows_that_an_objective_shares_with_the_end_task_are_not_counted_twice(
    aang: Aang, train_options: list[object], space: str, said: str
) -> None:
    options = ["--space", space, "--weighter", "static", "--steps", 1, "--dry-run"]
    done = aang("train", *train_options, *options)
    assert done.status == 0, done.err
    assert said in done.out


@pytest.mark.parametrize("weighter", ["factored", "single-task", "alpha-vil"])
def test_a_dry_run_measures_and_writes_nothing(
    aang: Aang,
    train_options: list[object],
    repeating: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    weighter: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["train", *train_options, *repeating, "--weighter", weighter, "--steps", 100]
    done = aang(*arguments, "--dry-run", "--json")
    assert done.status == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    assert found["overlaps"] == {"dev in train": 3}
    assert found["contradictory"]["texts"] == 2
    assert len(found["contradictory"]["labels"]) == 2
    assert found["rows"]["dev"] == (8 if weighter == "factored" else 0)
    assert found["expected"]["seconds"] > 0
    assert 0 < found["expected"]["steps"] <= 6
    assert found["expected"]["memory_bytes"] > 1e6
    assert {path.name for path in tmp_path.iterdir()} == {"train.jsonl", "dev.jsonl"}


def test_a_dry_run_of_control_characters_is_valid_json(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Such as those of text in Windows' encoding that was read as Latin-1."""
    rows = [{"text": text, "label": label} for label in "ab" for text in ("it\x92s", "plain")]
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows * 4), encoding="utf-8")
    data = ["--train", train, "--dev", train, "--test", train, "--weighter", "single-task"]
    done = aang("train", *train_options, *data, "--dry-run", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["contradictory"]["first"] == "it\x92s"


def test_a_dry_run_for_people(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = aang("train", *train_options, "--weighter", "single-task", "--dry-run", "--out", out)
    assert done.status == 0, done.err
    assert "none: single-task trains the end task alone" in done.out
    assert "an estimate from 4 measured steps" in done.out
    assert not out.exists()


def test_a_dry_run_of_an_interrupted_run_is_refused(aang: Aang, whole: Path) -> None:
    done = aang("train", "--resume", whole, "--dry-run")
    assert done.status == 2
    assert "leave --resume out" in done.err
