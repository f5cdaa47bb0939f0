"""``aang diagnose``: objectives measured against the end task, nothing trained."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from aang_plugin_diagnose import Theorem
from torch import nn

from tests.support.diagnosis import compared, smoothness
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


@pytest.mark.parametrize("end_task_weight", [0.02, 0.4, 0.9])
@pytest.mark.parametrize(("end", "auxiliary"), [(3.0, 8.0), (8.0, 3.0)])
def test_the_bound_is_the_least_over_t0_of_its_proof(
    end_task_weight: float, end: float, auxiliary: float
) -> None:
    """Equation 11 of AANG, minimised by trying every t0, for both pairs of β̄ and ρ."""
    theorem = Theorem(5.0, 2.0, end, auxiliary, 200, 600, steps=300, step_constant=0.05)
    total, gamma = 800, 4 * end_task_weight
    weights = {end: end_task_weight, auxiliary: 1 - end_task_weight}
    smoother = min(weights)
    pairs = (
        (weights[smoother] * smoother, (1 - weights[smoother]) * (5 + 2 * 2)),
        (sum(beta * weight for beta, weight in weights.items()), 0.0),
    )
    assert theorem.end_task_share == 0.25
    for bound, (beta, rho) in zip(theorem.bounds(end_task_weight), pairs, strict=True):
        t0 = torch.logspace(-8, 8, 400_001, dtype=torch.float64)
        growth = 2 * (2 * gamma * 2 + (total - gamma) * rho) / (beta * (total - gamma))
        least = (gamma * t0 / total + growth * (300 / t0) ** (0.05 * beta)).min()
        assert bound == pytest.approx(float(least), rel=1e-6)


def test_smoothness_is_that_of_the_hessian_along_the_gradient() -> None:
    """Of f = ½ θᵀ diag(1, 4) θ at (2, 1), whose gradient (2, 4) changes by (2, 16) / √20."""
    theta, curvature = nn.Parameter(torch.tensor([2.0, 1.0])), torch.tensor([1.0, 4.0])
    before = theta.detach().clone()
    found = smoothness({theta: curvature * before}, lambda: {theta: curvature * theta.detach()})
    assert found == pytest.approx((260 / 20) ** 0.5, rel=1e-3)
    assert torch.equal(theta, before)


def test_a_bound_over_the_end_tasks_weight(aang: Aang, options: list[object]) -> None:
    """What is measured without it stays the same, so every step along a gradient is taken back."""
    common = (*options, "--space", "x+y+z", "--batches", 2, "--precision", "fp32")
    plain = found(aang(*common, "--json"))
    bound = found(
        aang(*common, "--json", "--bound", "--steps", 100, "--lr", 1e-3, "--schedule", "constant")
    )
    assert plain["theorem"] is None
    theorem = bound.pop("theorem")
    for one in (bound["end_task"], *bound["objectives"]):
        assert one.pop("smoothness")["mean"] > 0
    for one in (plain["end_task"], *plain["objectives"]):
        assert one.pop("smoothness") is None
    del plain["theorem"]
    assert bound == plain
    assert theorem["distance"] == pytest.approx(
        sum(o["distance"]["mean"] for o in plain["objectives"]) / 3
    )
    assert theorem["end_task_share"] == 0.25
    assert (theorem["steps"], theorem["step_constant"]) == (100, pytest.approx(0.1))
    rows = {weight: min(values) for weight, *values in theorem["bounds"]}
    least = theorem["least"]["bound"]
    assert rows[least["end_task_weight"]] == least["value"] == min(rows.values())
    done = aang(*common, "--bound")
    assert "least at λ_e = 0.01" in done.out
    done = aang(*common, "--bound", "--precision", "bf16")
    assert done.status == 2
    assert "--precision fp32" in done.err


def test_views_that_dropout_alone_tells_apart_are_noted(aang: Aang, options: list[object]) -> None:
    for objective, noted in ("no-op", True), ("mask", False):
        name = f"task/{objective}/bidirectional/simcse"
        done = aang(*options, "--space", name, "--batches", 1)
        assert (f"the views of {name} are equal" in " ".join(done.err.split())) is noted


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
