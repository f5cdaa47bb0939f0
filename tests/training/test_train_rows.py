"""``--train-rows``: what the run folder says of them, and what is held against it later."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from aang import Run, train

from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.resuming import after_lines, everything

DRAWN = ("--train-rows", 24, "--seed", 3)


@pytest.fixture(scope="module")
def run(
    train_options: list[object], forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run on drawn rows."""
    out = tmp_path_factory.mktemp("drawn") / "run"
    child = forks.aang("train", *train_options, *DRAWN, "--space", "x+y+z", "--out", out)
    assert child.wait() == 0, child.said
    return out


def read(run: Path, name: str) -> dict[str, object]:
    value: dict[str, object] = json.loads((run / name).read_text(encoding="utf-8"))
    return value


def test_the_folder_says_which(run: Path, task_files: Path) -> None:
    rows = read(run, "train_rows.json")["rows"]
    lines = (task_files / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert isinstance(rows, list)
    assert len(rows) == 24
    assert read(run, "train_rows.json")["of"] == len(lines)
    data = read(run, "data.json")
    drawn = [json.loads(lines[i])["label"] for i in rows]
    parts = data["parts"]
    assert isinstance(parts, dict)
    assert parts["train"]["labels"] == {name: drawn.count(name) for name in sorted(set(drawn))}
    notes = data["notes"]
    assert isinstance(notes, list)
    assert "24 of 96 training rows drawn, stratified by class, seed 3" in notes
    # Objectives over the end task's text have no more of it than the end task.
    sources = data["sources"]
    assert isinstance(sources, dict)
    assert sources["task"]["texts"] == 24


def test_what_training_took(run: Path) -> None:
    """8 end-task rows and 8 of objectives in each of 6 steps, 8 of dev in all but the first two."""
    lines = [json.loads(line) for line in (run / "cost.jsonl").read_text().splitlines()]
    assert [line["rows"] for line in lines if line["step"] == 6] == [128, 128]
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    result = read(run, "result.json")
    assert result["body_rows"] == 128
    took = result["train_seconds"]
    assert isinstance(took, float)
    assert took >= seconds[-1] > 0


def test_a_run_that_had_only_to_end(run: Path, aang: Aang, tmp_path: Path) -> None:
    """Resumed from its last checkpoint, with all rows counted."""
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "result.json").unlink()
    done = aang("train", "--resume", copy, "--quiet")
    assert done.status == 0, done.err
    assert everything(copy) == everything(run)
    assert read(copy, "train_rows.json") == read(run, "train_rows.json")


def test_other_data_stops_it(run: Path, aang: Aang, task_files: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "result.json").unlink()
    text = (task_files / "train.jsonl").read_text(encoding="utf-8")
    other = tmp_path / "other.jsonl"
    other.write_text("".join(reversed(text.splitlines(keepends=True))), encoding="utf-8")
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    assert str(task_files / "train.jsonl") in config
    config = config.replace(str(task_files / "train.jsonl"), str(other))
    (copy / "config.yaml").write_text(config, encoding="utf-8")
    done = aang("train", "--resume", copy)
    assert done.status == 2
    assert "the data has changed (train" in done.err


@pytest.mark.full
def test_it_goes_on_with_the_same_rows(
    train_options: list[object], forks: Forks, tmp_path: Path
) -> None:
    """Interrupted, it ends as if it had not been, with all rows counted."""
    options = [
        *(*train_options, *DRAWN, "--space", "x+y+z", "--checkpoint-every", 0),
        *("--steps", 16, "--eval-every", 4),
    ]
    whole, part = tmp_path / "whole", tmp_path / "part"
    child = forks.aang("train", *options, "--out", whole)
    assert child.wait() == 0, child.said
    child = forks.aang("train", *options, "--out", part)
    child.when(after_lines(part / "weights.jsonl", 5))
    child.signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM, child.said
    child = forks.aang("train", "--resume", part)
    assert child.wait() == 0, child.said
    assert everything(part) == everything(whole)
    assert read(part, "train_rows.json") == read(whole, "train_rows.json")
    assert read(part, "result.json")["body_rows"] == 16 * 24 - 2 * 8


def test_evaluate(run: Path, task_files: Path, aang: Aang) -> None:
    done = aang("evaluate", run, "--data", task_files / "test.jsonl")
    assert done.status == 0, done.err


@pytest.mark.parametrize(("rows", "said"), [(97, "has 96 training rows"), (0, "--train-rows 0")])
def test_bad_numbers(
    train_options: list[object], tmp_path: Path, aang: Aang, rows: int, said: str
) -> None:
    done = aang("train", *train_options, "--train-rows", rows, "--out", tmp_path / "run")
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_dev_is_split_off_first(encoder: Path, task_files: Path, tmp_path: Path) -> None:
    """From Python too; the rows are counted in what is left."""
    run: Run = train(
        train=task_files / "train.jsonl",
        dev_fraction=0.25,
        train_rows=16,
        model=str(encoder),
        max_length=16,
        steps=1,
        batch_size=4,
        weighter="single-task",
        out=tmp_path / "run",
    )
    assert read(run.folder, "train_rows.json")["of"] == 72


@pytest.mark.full
def test_the_demo(tmp_path: Path, aang: Aang) -> None:
    """Its known score of plain fine-tuning is of all rows, so it is not shown beside."""
    done = aang(
        *("train", "--train-rows", 16, "--steps", 1, "--batch-size", 2, "--max-length", 8),
        *("--weighter", "single-task", "--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err
    assert "plain fine-tuning" not in done.out
    assert read(tmp_path / "run", "train_rows.json")["of"] == 200


@pytest.mark.parametrize(
    ("rows", "said"), [(12, "leaves 4 to fit the dev head to"), (8, "leaves none to fit"), (16, "")]
)
def test_few_rows_beside_those_of_a_step_are_told(
    aang: Aang, train_options: list[object], tmp_path: Path, rows: int, said: str
) -> None:
    """The dev head is fitted to the others."""
    options = ("--train-rows", rows, "--space", "x+y+z", "--weighter", "factored", "--dry-run")
    done = aang("train", *train_options, *options, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    told = [line for line in done.err.splitlines() if "the dev head" in line]
    assert [said in line for line in told] == [True] * bool(said)
