"""Folders of data sets that name files elsewhere."""

import json
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from aang_core import DataError
from tests.support.data import load_dataset_task, refuse_files_elsewhere


def saved(folder: Path) -> Path:
    rows = Dataset.from_dict({"text": ["one", "two"] * 10, "label": ["a", "b"] * 10})
    DatasetDict(train=rows).save_to_disk(folder)
    return folder


@pytest.mark.parametrize("name", ["../other/data.arrow", "/etc/passwd", "https://example.com/x"])
def test_a_saved_data_set_names_its_own_files(tmp_path: Path, name: str) -> None:
    folder = saved(tmp_path / "data")
    refuse_files_elsewhere(folder)
    state = folder / "train" / "state.json"
    content = json.loads(state.read_text()) | {"_data_files": [{"filename": name}]}
    state.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"--dataset .*data: state.json names .* not in the folder"):
        load_dataset_task(str(folder))


def test_splits_are_folders_of_the_data_set(tmp_path: Path) -> None:
    folder = saved(tmp_path / "data")
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "../../secret"]}))
    with pytest.raises(DataError, match=r"dataset_dict.json names '../../secret'"):
        load_dataset_task(str(folder))


@pytest.mark.parametrize(
    "files", ["../secret.csv", "[{split: train, path: /etc/passwd}]", "{train: [a.csv, ../b.csv]}"]
)
def test_a_card_names_files_of_its_folder(tmp_path: Path, files: str) -> None:
    (tmp_path / "train.csv").write_text("text,label\none,a\n")
    card = tmp_path / "README.md"
    card.write_text("---\nconfigs:\n- config_name: default\n  data_files: train.csv\n---\n")
    refuse_files_elsewhere(tmp_path)
    card.write_text(f"---\nconfigs:\n- config_name: default\n  data_files: {files}\n---\n")
    with pytest.raises(DataError, match=r"README.md names .* which is not in the folder"):
        refuse_files_elsewhere(tmp_path)
