"""Checkpoints on the disk: two are kept, and a damaged one does no harm."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from aang_core import DataError
from tests.support.storage import MANIFEST, CheckpointStore


def writes(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "state").write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """A store after three checkpoints, of which two are kept."""
    store = CheckpointStore(tmp_path / "checkpoints")
    for text in ("one", "two", "three"):
        store.save(writes(text))
    return store


def names(store: CheckpointStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def truncate(checkpoint: Path) -> None:
    (checkpoint / "state").write_bytes(b"thr")


def flip(checkpoint: Path) -> None:
    content = bytearray((checkpoint / "state").read_bytes())
    content[2] ^= 1
    (checkpoint / "state").write_bytes(content)


def lose(checkpoint: Path) -> None:
    (checkpoint / "state").unlink()


def lose_manifest(checkpoint: Path) -> None:
    (checkpoint / MANIFEST).unlink()


def garble_manifest(checkpoint: Path) -> None:
    (checkpoint / MANIFEST).write_text('{"files": {"state"')


def empty_manifest(checkpoint: Path) -> None:
    (checkpoint / MANIFEST).write_text(json.dumps({"files": []}))


DAMAGE = {
    "truncated": (truncate, "state has 3 bytes instead of 5"),
    "a flipped bit": (flip, "the checksum of state is wrong"),
    "a lost file": (lose, "state is missing"),
    "a lost manifest": (lose_manifest, "manifest.json cannot be read"),
    "half a manifest": (garble_manifest, "manifest.json cannot be read"),
    "another manifest": (empty_manifest, "manifest.json cannot be read"),
}


def test_the_last_two_are_kept(store: CheckpointStore) -> None:
    assert names(store) == ["000002", "000003"]
    newest = CheckpointStore(store.folder).newest()
    assert newest is not None
    assert (newest / "state").read_text() == "three"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_one_is_passed_over_and_told(
    store: CheckpointStore, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """And the next checkpoint drives the damaged one out, not the good one."""
    harm, problem = DAMAGE[damage]
    harm(store.folder / "000003")
    again = CheckpointStore(store.folder)
    with caplog.at_level(logging.WARNING):
        assert again.newest() == store.folder / "000002"
    assert problem in caplog.text
    assert "000002, the one before" in caplog.text
    again.save(writes("four"))
    assert names(again) == ["000002", "000004"]


def test_when_all_are_damaged_it_says_what_is_wrong_and_what_to_do(store: CheckpointStore) -> None:
    flip(store.folder / "000002")
    lose(store.folder / "000003")
    with pytest.raises(DataError) as raised:
        CheckpointStore(store.folder).newest()
    for part in ("000002", "checksum", "000003", "state is missing", "Remove that folder"):
        assert part in str(raised.value)


def test_there_is_none_at_the_beginning(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "checkpoints").newest() is None


def test_what_cannot_be_written_leaves_the_others_alone(store: CheckpointStore) -> None:
    """Nor does it leave a part of itself, which would fill a full disk."""

    def fails(folder: Path) -> None:
        (folder / "state").write_text("fo")
        (folder / "state" / "more").write_text("ur")

    with pytest.raises(NotADirectoryError):
        store.save(fails)
    assert names(store) == ["000002", "000003"]
    assert CheckpointStore(store.folder).newest() == store.folder / "000003"


def test_the_rest_of_a_killed_writer_does_not_count(store: CheckpointStore) -> None:
    left = store.folder / ".000004.tmp"
    left.mkdir()
    (left / "state").write_text("fo")
    again = CheckpointStore(store.folder)
    assert again.newest() == store.folder / "000003"
    again.save(writes("four"))
    assert names(again) == ["000003", "000004"]
    assert (again.folder / "000004" / "state").read_text() == "four"
