"""``aang diagnose``: objectives measured against the end task, nothing trained."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

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
