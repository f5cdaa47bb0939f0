"""The end task from folders that ``datasets.load_dataset`` reads as it reads the hub's."""

import json
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from aang_core import DataError, Example, ReadReport
from tests.support.data import load_dataset_task


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf-cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)


def save(folder: Path, splits: dict[str, list[tuple[str, int]]]) -> str:
    """Parquet files with class names in their metadata, as the hub has them."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["ham", "spam"])})
    data = DatasetDict(
        {
            split: Dataset.from_dict(
                {"text": [t for t, _ in rows], "label": [y for _, y in rows]}, features
            )
            for split, rows in splits.items()
        }
    )
    for split, rows in data.items():
        rows.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return str(folder)


TRAIN = [(f"text {i}", i % 2) for i in range(20)]


def test_splits_and_class_names(tmp_path: Path) -> None:
    name = save(tmp_path / "mails", {"train": TRAIN, "validation": [("a", 1)], "test": [("b", 0)]})
    task = load_dataset_task(name)
    assert task.name == "mails"
    assert task.labels == ("ham", "spam")
    assert task.train[1] == Example("text 1", label="spam")
    assert task.dev == (Example("a", label="spam"),)
    assert task.test == (Example("b", label="ham"),)


def test_a_missing_validation_split_is_taken_from_train(tmp_path: Path) -> None:
    report = ReadReport()
    task = load_dataset_task(save(tmp_path / "d", {"train": TRAIN}), report=report)
    assert len(task.train) + len(task.dev) == 20
    assert task.test == ()
    assert "split off as the dev set" in report.lines()[0]


def test_a_test_split_without_public_labels_is_left_out(tmp_path: Path) -> None:
    name = save(tmp_path / "d", {"train": TRAIN, "test": [("a", -1), ("b", -1)]})
    report = ReadReport()
    assert load_dataset_task(name, report=report).test == ()
    assert any("not public" in line for line in report.lines())


def test_single_missing_labels_are_an_error(tmp_path: Path) -> None:
    name = save(tmp_path / "d", {"train": [*TRAIN, ("a", -1)]})
    with pytest.raises(DataError, match="split 'train', row 21: column 'label' is null"):
        load_dataset_task(name)


def test_columns_of_other_names(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    rows = [{"premise": f"p{i}", "hypothesis": f"h{i}", "gold": "ab"[i % 2]} for i in range(8)]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = load_dataset_task(str(folder), text="premise", text_pair="hypothesis", label="gold")
    assert Example("p0", "h0", "a") in task.train + task.dev
    with pytest.raises(DataError, match="'premise', 'hypothesis', 'gold'"):
        load_dataset_task(str(folder))


def test_no_training_split(tmp_path: Path) -> None:
    name = save(tmp_path / "d", {"test": TRAIN})
    with pytest.raises(DataError, match="no split 'train', only 'test'"):
        load_dataset_task(name)


def test_splits_that_are_not_used_are_reported(tmp_path: Path) -> None:
    name = save(tmp_path / "d", {"train": TRAIN, "extra": TRAIN[:2]})
    splits = [f"{{split: {split}, path: '{split}-*'}}" for split in ("train", "extra")]
    card = f"---\nconfigs: [{{config_name: default, data_files: [{', '.join(splits)}]}}]\n---\n"
    (tmp_path / "d" / "README.md").write_text(card, encoding="utf-8")
    report = ReadReport()
    load_dataset_task(name, report=report)
    assert any("split 'extra' is not used" in line for line in report.notes)


@pytest.mark.parametrize("name", ["no-such-data-set", "./no/such/folder"])
def test_a_data_set_that_cannot_be_loaded(name: str) -> None:
    with pytest.raises(DataError, match=f"--dataset {name}: the data set cannot be loaded"):
        load_dataset_task(name)


def test_a_folder_with_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "a"\n{', encoding="utf-8")
    with pytest.raises(DataError, match="cannot be loaded"):
        load_dataset_task(str(tmp_path))
