"""What is renamed into place is on disk before, and its name after: power may fail at any time."""

import os
from pathlib import Path

import pytest

from tests.support.storage import write_file, write_folder

Calls = list[tuple[str, str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What is synced and renamed, by name, in order."""
    found: Calls = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def synced(descriptor: int) -> None:
        found.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def replaced(old: Path, new: Path) -> None:
        found.append(("rename", Path(old).name))
        replace(old, new)

    def renamed(old: Path, new: Path) -> None:
        found.append(("rename", Path(old).name))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "rename", renamed)
    return found


def test_a_file(calls: Calls, tmp_path: Path) -> None:
    write_file(tmp_path / "a.json", "{}")
    assert calls == [("sync", ".a.json.tmp"), ("rename", ".a.json.tmp"), ("sync", tmp_path.name)]


def test_a_folder(calls: Calls, tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "weights").write_text("1")
        (folder / "inner").mkdir()
        (folder / "inner" / "state").write_text("2")

    write_folder(tmp_path / "checkpoint", write)
    *before, renamed, after = calls
    assert {name for _, name in before} == {".checkpoint.tmp", "weights", "inner", "state"}
    assert renamed == ("rename", ".checkpoint.tmp")
    assert after == ("sync", tmp_path.name)
