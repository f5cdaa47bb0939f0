"""Signals are set beside each other and beside what each objective is worth alone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.signal_agreement import main, signals
from benchmarks.signal_quality import plugin
from benchmarks.table_methods import OBJECTIVES
from tests.support.commands import aang

COMMAND = ("--plugin", str(plugin.__file__), "signal-quality")

pytestmark = pytest.mark.release


def test_measured_signals_are_compared(tmp_path: Path) -> None:
    """Scores in the order of the first measurement's cosines agree fully with it."""
    lines = ["text,label"] + 12 * ["It rains again.,bad", "What a fine day!,good"]
    (tmp_path / "mood.csv").write_text("\n".join(lines), encoding="utf-8")
    files = [_measured(tmp_path, seed) for seed in (0, 1)]
    first = signals(files)["adamw-8"][str(files[0])]
    rows = [
        {"method": name, "seeds": [0], "dev": [first[name]], "test": [0.0]} for name in OBJECTIVES
    ]
    (tmp_path / "table.json").write_text(json.dumps(rows))
    done = CliRunner().invoke(main, [str(tmp_path), *map(str, files)])
    assert done.exit_code == 0, done.output
    rows_by_name = {line.split(" | ")[0]: line.split(" | ") for line in done.output.splitlines()}
    between, each = rows_by_name["| `adamw-8`"][1:3]
    assert each == f"+1.00 {between}"

    alone = [line for line in files[1].read_text().splitlines() if "no-op/bidir" not in line]
    files[1].write_text("\n".join(alone))
    refused = CliRunner().invoke(main, [str(tmp_path), *map(str, files)])
    assert refused.exit_code == 1
    assert "task/no-op/bidirectional/denoise was not measured" in refused.output


def _measured(folder: Path, seed: int) -> Path:
    options = ["--train", str(folder / "mood.csv"), "--space", "td", "--weighter", "single-task"]
    options += ["--max-length", "16", "--batch-size", "4", "--aux-batch-size", "4"]
    options += ["--dev-batch-size", "4", "--dev-head-rows", "8", "--steps", "20"]
    options += ["--quality-steps", "3", "--quality-every", "1", "--seed", str(seed), "--json"]
    done = CliRunner().invoke(
        aang, ["--plugin", plugin.__file__, "signal-quality", "--quiet", *options]
    )
    assert done.exit_code == 0, done.output
    file = folder / f"seed-{seed}.jsonl"
    file.write_text(done.stdout, encoding="utf-8")
    return file
