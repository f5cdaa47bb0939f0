"""What files are called."""

from pathlib import Path

import pytest
from aang.corpora.places import task_name


@pytest.mark.parametrize(
    ("train", "name"),
    [
        ("reviews.csv", "reviews"),
        ("acl-arc/train.jsonl.gz", "acl-arc"),
        ("acl-arc/Training.csv", "acl-arc"),
        ("train.csv", "train"),
    ],
)
def test_a_task_has_the_name_of_its_file_or_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: str, name: str
) -> None:
    """But never that of the home folder, which is a person's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert task_name(tmp_path / train) == name
