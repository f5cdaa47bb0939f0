"""The end task from files: its parts, its classes, and the dev set it may lack."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from aang_core import ConfigError, DataError, Example, ReadReport
from tests.support.data import load_task
from tests.support.runs import resolve_config


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


def test_labels_of_dev_that_are_all_the_same_are_noted(tmp_path: Path) -> None:
    """A score that is the same for every model would keep the model from before training."""
    train = write(tmp_path / "train.jsonl", ["a", "b"] * 4)
    for labels, noted in (["a"] * 3, True), (["a", "b"], False):
        report = ReadReport()
        load_task(train, write(tmp_path / "dev.jsonl", labels), report=report)
        assert any("Every label of dev is the same" in note for note in report.notes) is noted


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
def test_dev_fractions_out_of_range(fraction: float) -> None:
    with pytest.raises(ConfigError, match="--dev-fraction"):
        resolve_config({}, {"dev_fraction": fraction})


def test_classes_that_train_lacks_are_kept_in_dev_and_test(tmp_path: Path, train: Path) -> None:
    dev = write(tmp_path / "dev.jsonl", ["a", "x"], "dev")
    test = write(tmp_path / "test.jsonl", ["A", "x", "a", "x", "w"], "test")
    report = ReadReport()
    task = load_task(train, dev, test, report=report)
    assert (len(task.dev), len(task.test)) == (2, 5)
    assert task.labels == ("a", "b", "c")
    assert task.task_type.classes == ("a", "b", "c", "A", "w", "x")
    assert report.notes == [
        "1 row of dev with a class that train lacks ('x'), counted as wrong; the loss on dev "
        "leaves them out",
        "4 rows of test with a class that train lacks ('A', 'w', 'x'), counted as wrong",
        f"{test}: the labels 'a' and 'A' differ only in case, space or invisible characters. Each "
        "is a class of its own; write them alike if they are meant to be one",
    ]


@pytest.mark.parametrize("part", ["dev", "test"])
def test_a_part_without_any_class_of_train(tmp_path: Path, train: Path, part: str) -> None:
    """Its score would be zero whatever the model does: another column holds the label."""
    wrong = write(tmp_path / f"{part}.jsonl", ["1", "2"], part)
    with pytest.raises(DataError) as caught:
        load_task(train, *([wrong] if part == "dev" else [None, wrong]))
    message = str(caught.value)
    assert f"{part}.jsonl: no row has a class that can be predicted" in message
    assert "'a', 'b', 'c'; here they are '1', '2'. Does --label name the right" in message


INCOMPLETE = {
    "text,label\ngood,1.5\n,2.5\nbad,\n  ,0.5\n": [3, 4, 5],
    "text,label\n,\ngood,0.5\nbad,1.5\n": [2],
}


@pytest.mark.parametrize("content", INCOMPLETE)
def test_rows_without_a_text_or_label_are_all_counted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_task(path, path)
    lines, message = INCOMPLETE[content], str(caught.value)
    assert f"a.csv:{lines[0]}: column 'text' is empty. " in message
    assert "--skip-bad-rows leaves" in message
    if len(lines) > 1:
        assert "3 of 4 rows lack a text or a label, the first in lines 3, 4, 5." in message


def test_bad_rows_are_left_out_and_counted(tmp_path: Path, train: Path) -> None:
    """In every part; and what is missing does not make numbers into classes."""
    dev = tmp_path / "dev.csv"
    dev.write_text(next(iter(INCOMPLETE)) + "fine,3.5\n", encoding="utf-8")
    report = ReadReport()
    task = load_task(dev, dev, dev, skip_bad_rows=True, report=report)
    assert task.task_type.name == "regression"
    assert [example.label for example in task.train] == [1.5, 3.5]
    assert task.left_out == {"train": 3, "dev": 3, "test": 3}
    assert report.counts["row without a text, left out"] == 6
    assert report.counts["row without a label, left out"] == 3
    assert load_task(train, skip_bad_rows=True).left_out == {}


def test_a_key_that_some_records_lack_is_missing_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"text": "a"}, {"text": "b", "label": "x"}, {"text": "c", "label": "y"}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert len(load_task(path, path, skip_bad_rows=True).train) == 2
    with pytest.raises(DataError, match=r"a\.jsonl:1: there is no column 'label'.*with --label"):
        load_task(path, path)


def test_a_file_of_bad_rows_alone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "a", "other": 1}) * 1 + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="Every row lacks a text or a label: do --text and --label"):
        load_task(path, path, skip_bad_rows=True)


def test_a_single_class(tmp_path: Path) -> None:
    path = write(tmp_path / "same.jsonl", ["a"] * 5)
    with pytest.raises(DataError, match=r"same\.jsonl: the only class is 'a'"):
        load_task(path)


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_an_empty_part(tmp_path: Path, train: Path, part: str) -> None:
    empty = write(tmp_path / f"empty-{part}.jsonl", [])
    files = {"train": train, "dev": train, "test": train, part: empty}
    with pytest.raises(DataError, match=rf"empty-{part}\.jsonl: it contains no examples"):
        load_task(files["train"], files["dev"], files["test"])


def test_formats_may_be_mixed(tmp_path: Path, train: Path) -> None:
    dev = tmp_path / "dev.csv"
    dev.write_text("text,label\nx,a\n", encoding="utf-8")
    assert load_task(train, dev).dev == (Example("x", label="a"),)
