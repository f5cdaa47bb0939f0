"""The benchmark of reading a stream: what it reads is what it says."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.stream_reading import (
    PLACES,
    Place,
    Reading,
    line,
    make_shards,
    measured,
    read,
)

pytestmark = pytest.mark.release


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    papers = make_shards(tmp_path, tmp_path / "papers", megabytes=0.25, shard=0.05)
    return {
        "folder": str(tmp_path / "papers"),
        "papers": papers,
        "seconds": 0.1,
        "buffer": 100,
        "interleave": 2,
    }


def test_the_shards_are_links_to_two(job: dict[str, Any]) -> None:
    files = sorted(Path(job["folder"]).iterdir())
    assert [file.name for file in files] == list(job["papers"])
    assert len(files) == 5
    assert len({file.stat().st_ino for file in files}) == 2


def test_it_reads_at_every_place(job: dict[str, Any]) -> None:
    """It compares the texts that it has read with the position in the shards itself."""
    found = read(job)
    assert tuple(found.places) == PLACES
    for place in found.places.values():
        assert place.rows % 100 == 0
        assert place.rows > 0
        assert place.megabytes > 0
    assert found.highest >= found.before


def test_a_text_that_is_left_out_is_noticed(
    job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.stream_reading.PARAGRAPHS", 41)
    with pytest.raises(AssertionError):
        read(job)


def test_the_slowest_process_is_shown() -> None:
    """All read as many blocks, so the slowest is the one that took longest, wherever it stands."""
    fast, slow = (
        Reading({name: Place(600, seconds, 1, 1, 1, 1, 50, 200) for name in PLACES}, 100, 300)
        for seconds in (2.0, 3.0)
    )
    for readings in ([fast, slow], [slow, fast]):
        assert line(2, readings).startswith("| 2 | 200 |")


def test_two_processes_read_the_same(job: dict[str, Any], tmp_path: Path) -> None:
    one, other = measured(2, tmp_path / "job.json", job)
    for name in PLACES:
        assert one.places[name].rows == other.places[name].rows
        assert one.places[name].position == other.places[name].position
    assert line(2, [one, other]).startswith("| 2 | ")
