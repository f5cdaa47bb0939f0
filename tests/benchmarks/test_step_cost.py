"""Times of a step are kept in a file, which has one number of repeats and of threads."""

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.step_cost import SIZES, main

pytestmark = pytest.mark.release

TIMES = {"cpu_seconds": 2.0, "wall_seconds": 2.5}


def measure(out: Path, *options: str) -> Result:
    given = ["times", "--size=2x64", "--n=3", "--way=plain", "--out", str(out), *options]
    return CliRunner().invoke(main, given)


@pytest.mark.parametrize("measured", [{}, {"repeats": 7, "threads": 1}])
def test_times_that_were_measured_otherwise_are_refused(
    tmp_path: Path, measured: dict[str, int]
) -> None:
    """They would stand for what is asked for. Times that do not say it have the defaults."""
    setting = dataclasses.replace(SIZES["2x64"], n=3)
    cells = {setting.name: {"plain": {"times": {**TIMES, **measured}, "flops": 7}}}
    out = tmp_path / "times.json"
    out.write_text(json.dumps(cells), encoding="utf-8")
    known = measure(out)
    assert known.exit_code == 0
    assert "2.00 s (2.50 s)" in known.output
    # Another way of the same cell would stand in the same row of the table.
    for options in (("--repeats=3",), ("--threads=2",), ("--threads=2", "--way=static")):
        refused = measure(out, *options)
        assert refused.exit_code == 1
        assert "times.json has times of --repeats 7 --threads 1;" in refused.output
    assert json.loads(out.read_text()) == cells
    # Arithmetic does not depend on either.
    counted = CliRunner().invoke(
        main, ["flops", "--size=2x64", "--n=3", "--way=plain", "--repeats=3", "--out", str(out)]
    )
    assert counted.exit_code == 0
