"""``python -m benchmarks.signal_quality``: signals measured during a training."""

import json
from pathlib import Path

import pytest

from benchmarks.signal_quality import plugin
from benchmarks.small_kinds import KINDS
from tests.training.conftest import Aang

COMMAND = ("--plugin", plugin.__file__, "signal-quality")


@pytest.fixture
def options(encoder: Path, task_files: Path) -> list[object]:
    return [
        *(*COMMAND, "--train", task_files / "train.jsonl", "--dev", task_files / "dev.jsonl"),
        *("--model", encoder, "--max-length", 32),
        *("--batch-size", 12, "--dev-batch-size", 12),
    ]


SMALL_SPACE = """
name: small
data: [task]
transform: [bert-op]
representation: [bidirectional]
output: [end-task, denoise]
"""


@pytest.mark.full
@pytest.mark.parametrize("weighter", ["single-task", "factored"])
def test_signals_are_measured_on_the_way_of_a_training(
    aang: Aang, options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Every objective in every variant; the same seed gives the same numbers."""
    space = tmp_path / "small.yaml"
    space.write_text(SMALL_SPACE)
    more = (
        *("--space", space, "--weighter", weighter, "--dev-head-rows", 24),
        *("--quality-steps", 6, "--quality-every", 2, "--lr", 1e-3, "--head-lr", 1e-2),
    )
    outcomes = [aang(*options, *more, "--json") for _ in range(2)]
    assert outcomes[0].status == 0, outcomes[0].err
    assert outcomes[0].out == outcomes[1].out
    lines = [json.loads(line) for line in outcomes[0].out.splitlines()]
    names = [
        "end-task",
        "task/bert-op/bidirectional/end-task",
        "task/bert-op/bidirectional/denoise",
    ]
    variants = [
        *("adamw-3", "adamw-24", "logistic-24", "dev-48", "calibrated", "averaged", "adam-step"),
        *("own-noise", "own-spread", "beyond-end-task"),
    ]
    assert [(x["objective"], x["variant"]) for x in lines] == [
        (name, variant) for name in names for variant in variants
    ]
    samples = {x["variant"]: x["samples"] for x in lines}
    assert samples["adamw-24"] == 3
    assert samples["beyond-end-task"] == 2, "there is no mean of g_E before the first"
    for line in lines:
        if line["variant"] not in ("own-noise", "own-spread"):
            assert -1 <= line["value"] <= 1
    scores = tmp_path / "scores.csv"
    scores.write_text("objective,dev\n" + "".join(f"{name},0.5\n" for name in names))
    # They are refused before anything is measured: this would take days.
    many = ("--steps", 10**6, "--quality-steps", 10**6)
    done = aang(*options, *more, *many, "--scores", scores)
    assert done.status == 2
    assert "2 of the 2 objectives" in done.err
    done = aang(*options, *more)
    assert done.status == 0
    assert "Training follows adamw-24." in done.out


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(aang: Aang, kind_files: Path, encoder: Path, tmp_path: Path, kind: str) -> None:
    """Words have no logistic regression, which reads one vector a text; a note says so. Numbers
    have no logits that could be too sure."""
    space = tmp_path / "small.yaml"
    space.write_text(SMALL_SPACE)
    done = aang(
        *(*COMMAND, "--space", space, "--model", encoder, "--json"),
        *("--train", kind_files / kind / "train.jsonl", "--dev", kind_files / kind / "dev.jsonl"),
        *("--weighter", "single-task", "--max-length", 32, "--batch-size", 12),
        *("--dev-head-rows", 24, "--quality-steps", 4, "--quality-every", 2),
    )
    assert done.status == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    variants = list(dict.fromkeys(line["variant"] for line in lines))
    words = kind == "token-labels"
    logistic = [] if words else ["logistic-24"]
    calibrated = [] if kind == "regression" else ["calibrated"]
    first = ["adamw-3", "adamw-24", *logistic, "dev-128", *calibrated, "averaged"]
    assert variants[: len(first)] == first
    assert ("there is no column logistic" in done.err) == words
    for line in lines:
        if line["variant"].startswith(("adamw", "logistic", "dev", "calibrated")):
            assert -1 <= line["value"] <= 1


def test_bad_options(aang: Aang, options: list[object], tmp_path: Path) -> None:
    for more, said in (
        (["--quality-steps", 22], "raise --quality-steps"),
        (["--precision", "fp16"], "use bf16 or fp32"),
        (["--scores", tmp_path / "no.csv"], "cannot be read as scores"),
    ):
        done = aang(*options, *more)
        assert done.status == 2
        assert said in done.err
