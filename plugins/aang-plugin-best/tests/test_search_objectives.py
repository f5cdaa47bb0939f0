"""The choice of objectives by outcome: what is learned from scores, and a search end to end."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from aang_plugin_best.primitive_estimates import Estimates, Outcome, Set

from aang_core import Space, load_plugins, load_space
from tests import in_process
from tests.one_layer_encoder import write_one_layer_encoder

EFFECTS = {"supervised-contrast": 0.04, "denoise": -0.02, "left-to-right": -0.03}
"""What a set whose objectives all use a primitive really gains, over one that uses none of them."""


def gain(objectives: Set, effects: Mapping[str, float] = EFFECTS) -> float:
    """What a set really gains."""
    return float(np.mean([sum(effects.get(p, 0) for p in o.split("/")) for o in objectives]))


def outcomes(
    space: Space, number: int, noise: float, seed: int, effects: Mapping[str, float] = EFFECTS
) -> list[Outcome]:
    """Noisy scores of sets that are drawn without knowing anything, in three rungs."""
    generator = np.random.default_rng(seed)
    sets = Estimates.of(space, []).drawn(generator, number, [])
    plain, own = noise * generator.standard_normal(3), noise * generator.standard_normal(number)
    return [Outcome(s, i % 3, gain(s, effects) + own[i] - plain[i % 3]) for i, s in enumerate(sets)]


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("td+c", load_plugins().registry)


def of_outputs(estimates: Estimates) -> Mapping[str, float]:
    return {row["primitive"]: row["gain"] for row in estimates.table() if row["stage"] == "output"}


def test_primitives_that_help_are_found_in_noisy_scores_of_sets(space: Space) -> None:
    found = of_outputs(Estimates.of(space, outcomes(space, 60, 0.015, seed=0)))
    assert max(found, key=lambda name: found[name]) == "supervised-contrast"
    assert min(found, key=lambda name: found[name]) == "denoise"
    assert found["supervised-contrast"] - found["denoise"] == pytest.approx(0.06, abs=0.03)


def test_about_95_of_100_intervals_hold_the_true_effect(space: Space) -> None:
    held, widths = [], []
    for seed in range(20):
        generator = np.random.default_rng(100 + seed)
        names = [p.key for stage in space.stages.values() for p in stage]
        effects = dict(zip(names, 0.02 * generator.standard_normal(len(names)), strict=True))
        known = outcomes(space, 30, 0.02, seed, effects)
        for row in Estimates.of(space, known).table()[1:]:
            low, high = row["interval"]
            held.append(low <= effects[row["primitive"]] <= high)
            widths.append(high - low)
    assert 0.9 <= np.mean(held) <= 0.99
    assert np.mean(widths) < 0.9 * 2 * 1.96 * 0.02


def test_sets_are_drawn_by_the_estimates_and_the_best_are_kept(space: Space) -> None:
    known = outcomes(space, 60, 0.01, seed=1)
    estimates = Estimates.of(space, known)
    kept = sorted(estimates.sets, key=estimates.value)[-2:]
    drawn = estimates.drawn(np.random.default_rng(0), 12, kept)
    assert drawn[:2] == kept
    assert len(set(drawn)) == 12
    blind = np.mean([gain(outcome.objectives) for outcome in known])
    assert np.mean([gain(s) for s in drawn[2:]]) > blind + 0.02
    assert gain(max(estimates.sets, key=estimates.value)) > blind + 0.02


def test_a_space_with_few_sets_gives_all_of_them(space: Space) -> None:
    one = load_space("contrast", load_plugins().registry)
    name = "end-task-rows/no-op/bidirectional/supervised-contrast"
    assert Estimates.of(one, []).drawn(np.random.default_rng(0), 8, []) == [(name,)]


def test_scores_that_are_all_alike_say_nothing(space: Space) -> None:
    sets = Estimates.of(space, []).drawn(np.random.default_rng(0), 6, [])
    estimates = Estimates.of(space, [Outcome(s, 0, 0.0) for s in sets])
    assert not estimates.mean.any()
    assert np.isfinite(estimates.covariance).all()


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A search on the smallest encoder and few rows."""
    write_one_layer_encoder(tmp_path / "encoder")
    rows = [
        {"text": f"{word} and number {i}", "label": word}
        for i in range(25)
        for word in ("alpha", "beta")
    ]
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    size = ["--steps", "16", "--eval-every", "4", "--max-length", "16", "--batch-size", "4"]
    return [
        *(*in_process.NO_PAGE, "best", "--train", str(train), "--model", str(tmp_path / "encoder")),
        *("--candidate", "contrast", "--candidate", "plain", "--search-objectives"),
        *("--out", str(tmp_path / "best"), "--", *size, "--aux-batch-size", "4"),
    ]


def killed_when(command: list[str], reached: Callable[[], bool]) -> None:
    """Run a command until something is there, and kill it then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "aang_core", *command],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not reached():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.release
def test_a_search_makes_the_best_set_a_candidate(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    done = in_process.aang(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "best" / "objectives.json").read_text())
    sets = [rung["sets"] for rung in found["rungs"]]
    assert len(sets[0]) >= 2
    assert all(any(s in after for s in before) for before, after in itertools.pairwise(sets))
    assert found["times_contrast"] <= 3
    assert "supervised-contrast" in {row["primitive"] for row in found["estimates"]}
    assert "supervised-contrast" in done.stderr
    verdict = json.loads((tmp_path / "best" / "best.json").read_text())
    assert "objectives" in {of["name"] for of in verdict["board"]} | set(verdict["not_tried"])
    assert not any("search-of-objectives" in name for name in verdict["against"])
    again = in_process.aang(*command)
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "best" / "objectives.json").read_text()) == found


@pytest.mark.release
def test_a_search_that_is_killed_while_it_measures_a_set_goes_on(
    command: list[str], tmp_path: Path
) -> None:
    """A resumed training is measured, too: without a time for a set there would be no sets."""
    root = tmp_path / "best"
    first = root / "runs" / "search-of-objectives" / "rung-0" / "set-1"
    killed_when(command, (first / "checkpoints").is_dir)
    assert not (first / "result.json").is_file()
    file = root / "objectives.json"
    killed_when(command, lambda: '"sets"' in file.read_text())
    assert len(json.loads(file.read_text())["rungs"][0]["sets"]) >= 2


@pytest.mark.release
def test_a_search_that_is_killed_goes_on_with_the_same_sets(
    command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "best" / "objectives.json"
    killed_when(command, lambda: file.is_file() and '"sets"' in file.read_text())
    before = json.loads(file.read_text())
    assert "scores" not in before["rungs"][0]
    done = subprocess.run([sys.executable, "-m", "aang_core", *command], check=False)
    assert done.returncode == 0
    after = json.loads(file.read_text())
    assert after["rungs"][0]["sets"] == before["rungs"][0]["sets"]
    assert all(score is not None for score in after["rungs"][0]["scores"])
    assert after["best"]


def test_it_needs_contrast_to_measure_its_time_by(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    place = command.index("contrast")
    refused = in_process.aang(*command[: place - 1], *command[place + 1 :])
    assert refused.returncode == 2
    assert "add --candidate contrast" in refused.stderr
