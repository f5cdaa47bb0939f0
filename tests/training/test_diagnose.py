"""``aang diagnose``: objectives measured against the end task, nothing trained."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.small_kinds import KINDS
from tests.support.diagnosis import compared
from tests.training.conftest import Aang


@pytest.fixture
def options(encoder: Path, task_files: Path) -> list[object]:
    return [
        *("diagnose", "--train", task_files / "train.jsonl", "--dev", task_files / "dev.jsonl"),
        *("--model", encoder, "--max-length", 32),
        *("--batch-size", 12, "--dev-batch-size", 12),
    ]


def found(outcome: Any) -> dict[str, Any]:
    assert outcome.status == 0, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_one_pass_over_td(aang: Aang, options: list[object]) -> None:
    """Every objective, ranked by Δ̂; the counts of the theorem; the triangle inequality."""
    document = found(aang(*options, "--json"))
    assert document["batches"] == 8
    objectives = document["objectives"]
    assert len(objectives) == 24
    distances = [o["distance"]["mean"] for o in objectives]
    assert distances == sorted(distances)
    assert document["end_task"]["distance"] == {"mean": 0.0, "std": 0.0}
    rows = document["end_task_rows"]
    assert rows == 96
    assert document["auxiliary_rows"] == 24 * rows
    assert document["total_rows"] == 25 * rows
    # factored begins with λ_e = 1/2, and N' / N_e is 25.
    assert document["gamma"] == pytest.approx(12.5)
    end = document["end_task"]["norm"]["mean"]
    for objective in objectives:
        assert -1 <= objective["cosine"]["mean"] <= 1
        norm, distance = objective["norm"]["mean"], objective["distance"]["mean"]
        assert abs(norm - end) - 1e-6 <= distance <= norm + end + 1e-6


def test_the_same_seed_gives_the_same_numbers(
    aang: Aang, options: list[object], domain: list[object]
) -> None:
    space = (*domain, "--space", "td+ed", "--batches", 1, "--json")
    once, again = found(aang(*options, *space)), found(aang(*options, *space))
    assert once == again
    assert once["objectives"][0]["distance"]["std"] is None
    assert found(aang(*options, *space, "--seed", 1)) != once


def test_a_table_and_figures(aang: Aang, options: list[object], tmp_path: Path) -> None:
    for name, begins in (
        ("d.html", b"<!doctype html>"),
        ("d.png", b"\x89PNG"),
        ("d.svg", b"<?xml"),
    ):
        done = aang(
            *(*options, "--space", "tapt", "--batches", 2),
            *("--sort", "cosine", "--plot", tmp_path / name),
        )
        assert done.status == 0, done.err
        assert "task/bert-op/bidirectional/denoise" in done.out
        assert "P1" in done.out
        assert "N' = 192" in done.out
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_it_compares_gradients_parameter_by_parameter() -> None:
    """Where one of two gradients does not reach, it counts as zero."""
    a, b, c = (nn.Parameter(torch.zeros(2)) for _ in range(3))
    gradient = {a: torch.tensor([3.0, 0.0]), b: torch.tensor([0.0, 4.0])}
    v = {a: torch.tensor([2.0, 0.0]), c: torch.tensor([1.0, 1.0])}
    end = {b: torch.tensor([0.0, 1.0]), c: torch.tensor([0.0, 2.0])}
    cosine, norm, distance = compared(gradient, v, end)
    assert norm == 5.0
    assert cosine == pytest.approx(6 / (5 * 6**0.5))
    assert distance == pytest.approx((9 + 9 + 4) ** 0.5)
    assert compared({}, v, end)[:2] == (0.0, 0.0)


SMALL_SPACE = """
name: small
data: [task]
transform: [bert-op]
representation: [bidirectional]
output: [end-task, denoise]
"""


@pytest.mark.full
@pytest.mark.parametrize("weighter", ["single-task", "factored"])
def test_signal_quality_on_the_way_of_a_training(
    aang: Aang, options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Every objective in every variant; the same seed gives the same numbers."""
    space = tmp_path / "small.yaml"
    space.write_text(SMALL_SPACE)
    more = (
        *("--space", space, "--weighter", weighter, "--signal-quality", "--dev-head-rows", 24),
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
def test_signal_quality_of_every_kind(
    aang: Aang, kind_files: Path, encoder: Path, tmp_path: Path, kind: str
) -> None:
    """Words have no logistic regression, which reads one vector a text; a note says so. Numbers
    have no logits that could be too sure."""
    space = tmp_path / "small.yaml"
    space.write_text(SMALL_SPACE)
    done = aang(
        *("diagnose", "--signal-quality", "--space", space, "--model", encoder, "--json"),
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


def test_bad_options_of_signal_quality(aang: Aang, options: list[object], tmp_path: Path) -> None:
    for more, said in (
        (["--lr", 0.1], "--lr: needs --signal-quality"),
        (["--scores", tmp_path], "--scores: needs --signal-quality"),
        (["--signal-quality", "--batches", 2], "--batches: does not go with --signal-quality"),
        (["--signal-quality", "--quality-steps", 22], "raise --quality-steps"),
        (["--signal-quality", "--precision", "fp16"], "use bf16 or fp32"),
        (["--signal-quality", "--scores", tmp_path / "no.csv"], "cannot be read as scores"),
    ):
        done = aang(*options, *more)
        assert done.status == 2
        assert said in done.err


def test_bad_input(aang: Aang, options: list[object], tmp_path: Path) -> None:
    done = aang(*options, "--plot", tmp_path / "d.xlsx")
    assert done.status == 2
    assert ".html" in done.err
    done = aang(*options, "--weighter", "single-task")
    assert done.status == 2
    assert "no objective" in done.err
    done = aang(*options, "--batches", 0)
    assert done.status == 2
    done = aang(*options, "--precision", "fp16")
    assert done.status == 2
    assert "use bf16 or fp32" in done.err


def test_an_objective_that_predicts_through_the_end_task_s_head(
    aang: Aang, options: list[object]
) -> None:
    """It is measured through the head that was fitted to the end task, not one that agrees."""
    document = found(
        aang(
            *(*options, "--space", "task/mask/bidirectional/consistency", "--batches", 2),
            *("--set", "consistency.threshold=0", "--json"),
        )
    )
    (objective,) = document["objectives"]
    assert objective["norm"]["mean"] > 0
