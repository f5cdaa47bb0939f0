"""Learned weights are set beside what each objective is worth alone."""

import csv
import json
from pathlib import Path

import click
import pytest
from aang import train
from click.testing import CliRunner
from scipy.stats import spearmanr

from benchmarks.learned_weights import alone, correlation, main
from benchmarks.table_methods import OBJECTIVES

pytestmark = pytest.mark.release


def test_weights_of_real_runs_are_compared(tmp_path: Path) -> None:
    """Scores in the order of the last half's weights of the first seed correlate fully with it."""
    lines = ["text,label"] + 12 * ["It rains again.,bad", "What a fine day!,good"]
    (tmp_path / "mood.csv").write_text("\n".join(lines), encoding="utf-8")
    runs = [
        train(
            train=str(tmp_path / "mood.csv"),
            space="td",
            weighter="factored",
            steps=4,
            set={"factored": {"lr": 1.0}},
            seed=seed,
            max_length=16,
            batch_size=4,
            dev_batch_size=4,
            aux_batch_size=6,
            out=str(tmp_path / "learned" / f"seed-{seed}"),
        )
        for seed in (0, 1)
    ]
    late = runs[0].records.mean_weights(0.5, 1.0)
    assert len(set(late.values())) > 12  # the weights moved apart
    rows = [
        {
            "method": name,
            "seeds": [0, 1],
            "dev": [late[full], late[full] / 2],
            "test": [-late[full], 0.0],
        }
        for name, full in OBJECTIVES.items()
    ]
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "table.json").write_text(json.dumps([*rows, {"method": "single-task"}]))
    out = tmp_path / "out"
    arguments = [str(tmp_path / "learned"), str(out), "--alone", str(alone)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "weight of seed 0 and dev alone: +1.00" in done.output
    assert "dev alone of two seeds: +1.00" in done.output
    assert "dev alone and test alone: -1.00" in done.output
    assert (out / "weights.png").read_bytes().startswith(b"\x89PNG")
    with (out / "objectives.csv").open(encoding="utf-8", newline="") as file:
        table = {row["objective"]: row for row in csv.DictReader(file)}
    assert table.keys() == OBJECTIVES.keys()
    for name, row in table.items():
        assert float(row["weight-0"]) == pytest.approx(100 * late[OBJECTIVES[name]], abs=1e-4)
    weights_only = CliRunner().invoke(main, arguments[:2])
    assert weights_only.exit_code == 0, weights_only.output
    both = [[run.records.mean_weights(0.5, 1.0)[o] for o in OBJECTIVES.values()] for run in runs]
    rho = float(spearmanr(*both).statistic)
    assert weights_only.output.endswith(f"weights of two seeds: {rho:+.2f}\n")
    rows.pop()
    (alone / "table.json").write_text(json.dumps(rows))
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 1
    assert "no-op.random-factorized.end-task was not trained alone" in refused.output


def test_scores_alone_are_those_of_the_same_seeds(tmp_path: Path) -> None:
    """A seed that an objective lacks is left out for all, also where it is not the last one."""
    rows = [
        {"method": name, "seeds": [0, 1], "dev": [0.5, 0.9], "test": [0.4, 0.8]}
        for name in OBJECTIVES
    ]
    first, other = list(OBJECTIVES)[:2]
    rows[0] = {"method": first, "seeds": [1, 2], "dev": [0.7, 0.1], "test": [0.6, 0.1]}
    (tmp_path / "table.json").write_text(json.dumps(rows))
    assert list(alone(tmp_path, "dev")) == ["1"]
    scores = alone(tmp_path, "test")["1"]
    assert scores[first] == pytest.approx(60)
    assert scores[other] == pytest.approx(80)
    rows[0]["seeds"] = [2, 3]
    (tmp_path / "table.json").write_text(json.dumps(rows))
    with pytest.raises(click.ClickException, match="no seed has a score on dev of every objective"):
        alone(tmp_path, "dev")


def test_ranks_are_compared_and_not_values() -> None:
    one = {name: float(place) for place, name in enumerate(OBJECTIVES)}
    assert correlation(one, {name: value**3 for name, value in one.items()})[0] == pytest.approx(1)
    assert correlation(one, {name: -value for name, value in one.items()})[0] == pytest.approx(-1)
