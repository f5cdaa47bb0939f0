"""What a sweep costs beside its runs: the arithmetic, and real processes that are watched."""

from pathlib import Path

import pytest

from benchmarks.sweep_overhead import Life, Overhead, lives_in, sweep

pytestmark = pytest.mark.release


def test_time_between_two_sessions_is_not_counted() -> None:
    lives = [Life("a", 1, 0.0, 2.0), Life("b", 1, 2.5, 4.0), Life("c", 2, 100.0, 101.0)]
    cost = Overhead.of(lives, 1)
    assert cost.seconds == pytest.approx(5.0)
    assert cost.of_a_run == pytest.approx((5.0 - 4.5) / 3)


def test_each_run_is_measured_once(tmp_path: Path) -> None:
    """A line that was cut off is measured again, with a run that is new."""
    assert sweep(tmp_path, "local", 2, 1).runs == 2
    file = tmp_path / "local-1" / "lifetimes.jsonl"
    before, after = lives_in(file)
    assert before.began < before.ended < after.ended
    assert after.began < after.ended
    file.write_text(file.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    assert lives_in(file) == [before]
    sweep(tmp_path, "local", 3, 1)
    lives = lives_in(file)
    assert lives[0] == before
    assert [Path(life.run).name for life in lives] == ["seed-0", "seed-1", "seed-2"]
