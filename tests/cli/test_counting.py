"""Counting of what is done, where standard error is not a terminal."""

from collections.abc import Callable

import pytest

from tests.support.commands import counting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the seconds since the beginning."""
    seconds = [0.0]
    monkeypatch.setattr("aang.cli.progress.time.perf_counter", lambda: seconds[0])

    def wait_until(second: float) -> None:
        seconds[0] = second

    return wait_until


def test_long_work_says_how_far_it_is(
    clock: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """After ten seconds, and once a minute from then on; not at the end, which the result shows."""
    with counting("batches", quiet=False) as progress:
        for done in range(1, 17):
            clock(done * 30.0)
            progress(done, 16)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "batches: 1 of 16, about 8 min left",
        "batches: 3 of 16, about 6 min left",
        "batches: 5 of 16, about 6 min left",
        "batches: 7 of 16, about 4 min left",
        "batches: 9 of 16, about 4 min left",
        "batches: 11 of 16, about 2 min left",
        "batches: 13 of 16, about 90 s left",
        "batches: 15 of 16, about 30 s left",
    ]


def test_an_unknown_total_is_not_guessed(
    clock: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with counting("texts", quiet=False) as progress:
        for done in (1, 2, 3):
            clock(done * 9.0)
            progress(done, None)
    assert capsys.readouterr().err.splitlines() == ["texts: 2"]


@pytest.mark.parametrize(("quiet", "seconds"), [(True, 100.0), (False, 5.0)])
def test_quiet_and_short_work_say_nothing(
    quiet: bool,
    seconds: float,
    clock: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with counting("texts", quiet=quiet) as progress:
        clock(seconds)
        progress(1, 2)
    assert capsys.readouterr().err == ""
