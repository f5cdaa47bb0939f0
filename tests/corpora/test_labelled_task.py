"""The end task from files: its parts, its classes, and the dev set it may lack."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from aang_core.corpora.labelled_task import load_task
from aang_core.errors import ConfigError, DataError
from aang_core.objectives.stages import Example, ReadReport


def write(path: Path, labels: Sequence[str], prefix: str = "text") -> Path:
    lines = [json.dumps({"text": f"{prefix} {i}", "label": y}) for i, y in enumerate(labels)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return write(tmp_path / "train.jsonl", ["b"] * 60 + ["a"] * 30 + ["c"] * 10)


def test_parts_and_classes(tmp_path: Path, train: Path) -> None:
    dev = write(tmp_path / "dev.jsonl", ["a", "b"], "dev")
    test = write(tmp_path / "test.jsonl", ["c"], "test")
    report = ReadReport()
    task = load_task(train, dev, test, report=report)
    assert (len(task.train), len(task.dev), len(task.test)) == (100, 2, 1)
    assert task.labels == ("a", "b", "c")
    assert task.test == (Example("test 0", label="c"),)
    assert not report.counts


@pytest.mark.parametrize(
    ("file", "name"),
    [("reviews/train.jsonl", "reviews"), ("acl.jsonl", "acl"), ("x/Training.jsonl", "x")],
)
def test_the_name_comes_from_the_folder_or_the_file(tmp_path: Path, file: str, name: str) -> None:
    path = write(tmp_path / file, ["a", "b"] * 4)
    assert load_task(path).name == name


def test_the_digest_changes_with_the_content_and_with_nothing_else(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", ["a", "b"] * 4)
    second = write(tmp_path / "b.jsonl", ["a", "b"] * 4)
    other = write(tmp_path / "c.jsonl", ["a", "b"] * 3 + ["b", "a"])
    digests = [load_task(path, first).digest for path in (first, second, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_missing_dev_set_is_split_off_train(train: Path) -> None:
    report = ReadReport()
    task = load_task(train, dev_fraction=0.2, report=report)
    assert Counter(e.label for e in task.dev) == {"b": 12, "a": 6, "c": 2}
    assert len(task.train) == 80
    assert not set(task.train) & set(task.dev)
    assert "20 of 100 examples" in report.lines()[0]
    # In file order, both.
    order = [int(e.text.split()[1]) for e in task.train]
    assert order == sorted(order)


def test_the_split_depends_on_the_seed_alone(train: Path) -> None:
    assert load_task(train, seed=3).dev == load_task(train, seed=3).dev
    assert load_task(train, seed=3).dev != load_task(train, seed=4).dev
    assert load_task(train, seed=2**40).dev


def test_classes_with_a_single_example_stay_in_train(tmp_path: Path) -> None:
    path = write(tmp_path / "few.jsonl", ["a"] * 20 + ["rare"] + ["b"] * 20)
    report = ReadReport()
    task = load_task(path, report=report)
    assert "rare" in {e.label for e in task.train}
    assert "rare" not in {e.label for e in task.dev}
    assert report.first["class with a single example, so absent from dev"].endswith(":21")


@pytest.mark.parametrize("labels", [["a", "b"] * 2, ["a"] * 3 + ["b"] * 2, list("aabbccddee")])
def test_tiny_tasks_are_split_so_that_train_keeps_every_class(
    tmp_path: Path, labels: list[str]
) -> None:
    task = load_task(write(tmp_path / "tiny.jsonl", labels))
    assert {e.label for e in task.train} == set(labels)
    assert task.dev


def test_nothing_to_split(tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", ["a", "b", "c"])
    with pytest.raises(DataError, match="--dev"):
        load_task(path)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 0.6, float("nan")])
def test_dev_fractions_out_of_range(train: Path, fraction: float) -> None:
    with pytest.raises(ConfigError, match="--dev-fraction"):
        load_task(train, dev_fraction=fraction)


@pytest.mark.parametrize("part", ["dev", "test"])
def test_a_class_that_train_lacks(tmp_path: Path, train: Path, part: str) -> None:
    wrong = write(tmp_path / f"{part}.jsonl", ["a", "A "], part)
    with pytest.raises(DataError) as caught:
        load_task(train, *([wrong] if part == "dev" else [None, wrong]))
    message = str(caught.value)
    assert f"{part}.jsonl:2: label 'A'" in message
    assert "'a', 'b', 'c'" in message


def test_a_misspelled_class_is_guessed(tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", ["Background", "Uses"] * 2)
    dev = write(tmp_path / "dev.jsonl", ["Backgruond"])
    with pytest.raises(DataError, match="Is 'Background' meant"):
        load_task(train, dev)


def test_a_single_class(tmp_path: Path) -> None:
    path = write(tmp_path / "same.jsonl", ["a"] * 5)
    with pytest.raises(DataError, match=r"same\.jsonl: every example has the label 'a'"):
        load_task(path)


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_an_empty_part(tmp_path: Path, train: Path, part: str) -> None:
    empty = write(tmp_path / f"empty-{part}.jsonl", [])
    files = {"train": train, "dev": train, "test": train, part: empty}
    with pytest.raises(DataError, match=rf"empty-{part}\.jsonl: it contains no examples"):
        load_task(files["train"], files["dev"], files["test"])


def test_held_out_texts_that_were_trained_on_are_counted(tmp_path: Path, train: Path) -> None:
    dev = write(tmp_path / "dev.jsonl", ["b", "a", "c"])
    report = ReadReport()
    load_task(train, dev, report=report)
    assert report.counts["dev text that is also in the training data"] == 3


def test_formats_may_be_mixed(tmp_path: Path, train: Path) -> None:
    dev = tmp_path / "dev.csv"
    dev.write_text("text,label\nx,a\n", encoding="utf-8")
    assert load_task(train, dev).dev == (Example("x", label="a"),)
