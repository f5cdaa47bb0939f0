"""The benchmark of resident memory measures both loops, each in a process of its own."""

import pytest
from click.testing import CliRunner

from benchmarks.resident_memory import main

pytestmark = pytest.mark.release


def test_both_loops_are_measured(capfd: pytest.CaptureFixture[str]) -> None:
    assert CliRunner().invoke(main, ["--rows=4", "--layers=1", "--steps=2"]).exit_code == 0
    lines = [
        line.split("|")
        for line in capfd.readouterr().out.splitlines()
        if "| aang" in line or "| bare" in line
    ]
    assert [(loop.strip(), int(step)) for _, loop, step, *_ in lines] == [
        ("bare", 1),
        ("bare", 2),
        ("aang", 1),
        ("aang", 2),
    ]
    assert all(0.1 < float(line[3]) < 5 for line in lines)
