"""PCGrad and CAGrad on gradients of two numbers, worked out by hand."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from aang_plugin_surgery.cagrad import CAGrad, direction, onto_simplex
from aang_plugin_surgery.pcgrad import PCGrad, conflicts, projected
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, TaskCard

END = TaskCard("end")
TWO = [TaskCard(name) for name in "ab"]


def bench(vectors: Mapping[str, Sequence[float]]) -> RecordingWorkbench:
    names = [name for name in vectors if name != "end"]
    return RecordingWorkbench("end", names, gradient=vectors.__getitem__)


def moved(coefficients: Mapping[str, float], vectors: Mapping[str, Sequence[float]]) -> list[float]:
    """Σ c_k g_k."""
    rows = [[c * x for x in vectors[name]] for name, c in coefficients.items()]
    return [math.fsum(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("made", "most_steps"),
    [(PCGrad, None), (CAGrad, 3), pytest.param(CAGrad, None, marks=pytest.mark.full)],
)
def test_they_keep_the_contract(
    made: Any, most_steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with few of the steps of CAGrad's solver, which take most of the time."""
    if most_steps is not None:
        monkeypatch.setattr("aang_plugin_surgery.cagrad.MOST_STEPS", most_steps)
    check_weighter(made)
    check_weighter(lambda end, auxiliaries: made(end, auxiliaries, n=2))


def test_two_conflicting_gradients_are_each_projected() -> None:
    """(1, 0) and (−1, 1): the first becomes (½, ½), the second (0, 1); half their sum."""
    vectors = {"end": [1.0, 0.0], "a": [-1.0, 1.0]}
    recorded = bench(vectors)
    weighter = PCGrad(END, TWO[:1])
    weighter.round(recorded)
    assert moved(recorded.descents[0], vectors) == pytest.approx([0.25, 0.75])
    assert weighter.record() == {"conflicts": 1.0}


def test_gradients_that_agree_make_the_step_of_equal_weights() -> None:
    recorded = bench({"end": [1.0, 0.0], "a": [0.5, 1.0], "b": [0.0, 2.0]})
    weighter = PCGrad(END, TWO)
    weighter.round(recorded)
    assert recorded.descents == [pytest.approx(dict.fromkeys(("end", "a", "b"), 1 / 3))]
    assert recorded.of_heads == recorded.descents
    assert weighter.record() == {"conflicts": 0.0}


def test_projections_follow_each_other_on_the_original_gradients() -> None:
    """g = (1, 0), h = (−1, 1), k = (−1, −2). g off h: (½, ½); its product with k is −1.5, so off k:
    + 1.5/5 k = (0.2, −0.1). In the other order: g off k is (0.8, −0.4), −1.2 along h, + 0.6 h."""
    g, h, k = [1.0, 0.0], [-1.0, 1.0], [-1.0, -2.0]
    dots = [
        [math.fsum(a * b for a, b in zip(u, v, strict=True)) for v in (g, h, k)] for u in (g, h, k)
    ]
    assert projected(dots, 0, [1, 2]) == pytest.approx([1.0, 0.5, 0.3])
    assert projected(dots, 0, [2, 1]) == pytest.approx([1.0, 0.6, 0.2])
    assert conflicts(dots) == 1.0
    assert conflicts([[1.0, 0.0], [0.0, 1.0]]) == 0.0


def test_a_zero_gradient_conflicts_with_nothing() -> None:
    for made in (PCGrad(END, TWO), CAGrad(END, TWO)):
        recorded = bench({"end": [0.0, 0.0], "a": [0.0, 0.0], "b": [1.0, 0.0]})
        made.round(recorded)
        assert all(math.isfinite(c) for c in recorded.descents[0].values())


def test_orders_come_from_the_generator_of_the_run() -> None:
    vectors = {"end": [1.0, 0.0], "a": [-1.0, 1.0], "b": [-1.0, -2.0]}
    found = []
    for _ in range(2):
        recorded = bench(vectors)
        for _ in range(5):
            PCGrad(END, TWO).round(recorded)
        found.append(recorded.descents)
    assert found[0] == found[1]
    assert len({tuple(d.values()) for d in found[0]}) > 1


def test_a_step_that_is_left_out_is_no_step_of_the_weighter() -> None:
    class Skips(RecordingWorkbench):
        def gradients(self, names: Sequence[str]) -> None:
            return None

    for made in (PCGrad(END, TWO), CAGrad(END, TWO)):
        recorded = Skips("end", ["a", "b"])
        made.round(recorded)
        assert recorded.descents == []


def test_without_a_radius_cagrad_is_the_mean_gradient() -> None:
    recorded = bench({"end": [1.0, 0.0], "a": [-3.0, 1.0]})
    CAGrad(END, TWO[:1], c=0.0).round(recorded)
    assert recorded.descents == [{"end": 0.5, "a": 0.5}]


def test_the_direction_for_gradients_of_different_lengths() -> None:
    """(2, 0) and (0, 1), c = ½. With w = (p, 1 − p) the dual is p² ... a function of p alone, whose
    least value a fine grid finds; d raises the smaller of the two gains above that of the mean."""
    g, c = torch.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=torch.float64), 0.5
    mean = g.mean(dim=0)
    grid = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    along = torch.stack([grid, 1 - grid], dim=1) @ g
    dual = along @ mean + c * mean.norm() * along.norm(dim=1)
    best = float(grid[dual.argmin()])
    coefficients, w = direction(g @ g.T, c)
    assert w.tolist() == pytest.approx([best, 1 - best], abs=1e-4)
    d = coefficients @ g
    assert float((d - mean).norm()) == pytest.approx(c * float(mean.norm()), rel=1e-6)
    assert float((g @ d).min()) > float((g @ mean).min())
    # Strong duality: the least gain is the value of the dual.
    assert float((g @ d).min()) == pytest.approx(float(dual.min()), rel=1e-5)


def test_the_least_gain_is_as_large_as_the_dual_says() -> None:
    """For random gradients of four tasks: no direction of the ball can do better."""
    torch.manual_seed(0)
    for _ in range(20):
        g = torch.randn(4, 6, dtype=torch.float64) * torch.rand(4, 1, dtype=torch.float64) * 10
        coefficients, w = direction(g @ g.T, 0.4)
        d, mean, along = coefficients @ g, g.mean(dim=0), w @ g
        value = float(along @ mean + 0.4 * mean.norm() * along.norm())
        assert float((g @ d).min()) == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert float((d - mean).norm()) == pytest.approx(0.4 * float(mean.norm()), rel=1e-6)


def test_opposite_gradients_have_no_direction_that_helps_both() -> None:
    recorded = bench({"end": [1.0, 0.0], "a": [-1.0, 0.0]})
    CAGrad(END, TWO[:1]).round(recorded)
    assert recorded.descents == [{"end": 0.5, "a": 0.5}]


def test_heads_move_by_their_own_gradients() -> None:
    recorded = bench({"end": [2.0, 0.0], "a": [0.0, 1.0]})
    CAGrad(END, TWO[:1]).round(recorded)
    assert recorded.of_heads == [{"end": 0.5, "a": 0.5}]
    assert recorded.descents[0]["a"] > recorded.descents[0]["end"]


def test_the_nearest_point_of_the_simplex() -> None:
    assert onto_simplex(torch.tensor([0.2, 0.3, 0.5])).tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert onto_simplex(torch.tensor([5.0, 0.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("c", [-0.1, 1.0, math.nan, "0.4", True])
def test_a_senseless_radius_is_refused(c: Any) -> None:
    with pytest.raises(ConfigError, match="option c"):
        CAGrad(END, TWO, c=c)
