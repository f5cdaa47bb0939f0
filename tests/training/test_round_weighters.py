"""Weighters whose rounds are epochs, through whole trainings."""

import json
from pathlib import Path

import pytest

from tests.training.conftest import Aang


@pytest.mark.parametrize("weighter", ["alpha-vil", "diw"])
def test_a_round_takes_a_sub_sample(
    aang: Aang, train_options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Two of the objectives a round, a twelfth of the rows: one step a trial, counted."""
    run = tmp_path / "run"
    outcome = aang(
        "train",
        *train_options,
        *("--weighter", weighter, "--set", f"{weighter}.n=2", "--set", f"{weighter}.fraction=0.08"),
        *(("--set", "alpha-vil.tuning_steps=2") if weighter == "alpha-vil" else ()),
        *("--space", "x+y+z", "--steps", 8, "--eval-every", 4, "--out", run),
    )
    assert outcome.status == 0, outcome.err
    lines = [json.loads(line) for line in (run / "weights.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 8
    for line in lines:
        assert sum(line["weights"].values()) + line["end_task_weight"] == pytest.approx(1.0)
        tried = line["alpha"] if weighter == "alpha-vil" else line["dev_scores"]["alone"]
        # The last round of alpha-vil has two steps left, for two of its three tasks.
        assert len(tried) == (2 if weighter == "alpha-vil" and line is lines[-1] else 3)
    if weighter == "alpha-vil":
        # Dev scores of six steps may all be the same, and then diw has nothing to go by.
        assert lines[0]["importance"] != lines[-1]["importance"]
    scores = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(scores) >= 2
    assert json.loads((run / "result.json").read_text())["weighter"] == weighter
