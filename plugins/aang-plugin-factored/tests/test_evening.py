"""Options of ``factored`` that hold the weights together, worked out by hand."""

import itertools
import math
from collections import Counter
from typing import Any

import pytest
from aang_plugin_factored.factored import Factored
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, StepSignals, TaskCard

END = TaskCard("end")
A = TaskCard("a", {"transform": "mask", "output": "denoise"})
B = TaskCard("b", {"transform": "mask", "output": "end-task"})
C = TaskCard("c", {"transform": "no-op", "output": "end-task"})


def cosines(**values: float) -> StepSignals:
    return StepSignals({"end": 0.0, **values}, {}, {}, {"cosine": 0.0}, 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"share": "mean"},
        {"floor": 0.3},
        {"floor": 1.0},
        {"evenness": 2.0, "lr": 10.0},
        {"draw": "weights", "n": 1, "lr": 10.0},
        {"draw": "weights", "explore": 1.0, "evenness": 0.1, "share": "mean"},
    ],
)
def test_it_keeps_the_contract(options: dict[str, Any]) -> None:
    check_weighter(lambda end, auxiliaries: Factored(end, auxiliaries, **options))


def test_a_shared_factor_may_take_the_mean_of_its_cosines() -> None:
    weighter = Factored(END, [A, B, C], lr=2.0, share="mean")
    weighter.observe(["a", "b", "c"], cosines(a=0.5, b=-0.25, c=0.1))
    assert weighter.record()["factors"] == {
        "all": {"a": 1.0, "b": -0.5, "c": 0.2},
        "transform": {"mask": pytest.approx(2 * (0.5 - 0.25) / 2), "no-op": 0.2},
        "output": {"denoise": 1.0, "end-task": pytest.approx(2 * (-0.25 + 0.1) / 2)},
    }


def test_the_floor_is_shared_out_among_the_sampled() -> None:
    """Logits a: 3, b: 1, c: 0 after one step; f = 0.3 of three gives each a tenth."""
    weighter = Factored(END, [A, B, C], lr=1.0, end_task_lr=0.0, floor=0.3)
    weighter.observe(["a"], cosines(a=1.0))
    total = math.e**3 + math.e + 1
    assert weighter.coefficients(["a", "b", "c"]) == pytest.approx(
        {
            "end": 0.5,
            "a": 0.5 * (0.7 * math.e**3 / total + 0.1),
            "b": 0.5 * (0.7 * math.e / total + 0.1),
            "c": 0.5 * (0.7 / total + 0.1),
        }
    )
    for _ in range(300):
        weighter.observe(["a", "c"], cosines(a=1.0, c=-1.0))
    assert weighter.coefficients(["a", "c"])["c"] == pytest.approx(0.5 * 0.15)


def test_evenness_pulls_the_heavy_down_and_the_light_up() -> None:
    """Logits a: 3, b: 1; then each logit moves by η (cos_k + β (1/2 − w_k))."""
    weighter = Factored(END, [A, B], lr=1.0, evenness=0.4)
    weighter.observe(["a"], cosines(a=1.0))  # alone its weight is 1 and the pull nothing
    assert weighter.record()["factors"]["all"] == {"a": 1.0, "b": 0.0}
    heavy = 1 / (1 + math.exp(-2))
    weighter.observe(["a", "b"], cosines(a=0.1, b=0.1))
    own = weighter.record()["factors"]["all"]
    assert own["a"] == pytest.approx(1 + 0.1 + 0.4 * (0.5 - heavy))
    assert own["b"] == pytest.approx(0.1 + 0.4 * (0.5 - (1 - heavy)))


def test_with_evenness_the_weights_come_to_rest() -> None:
    """At rest cos_a − cos_b = β (w_a − w_b), so w_a − w_b = 0.1 / 0.5."""
    weighter = Factored(END, [A, C], lr=0.5, end_task_lr=0.0, evenness=0.5)
    for _ in range(400):
        weighter.observe(["a", "c"], cosines(a=0.3, c=0.2))
    weights = weighter.weights()
    assert 2 * (weights["a"] - weights["c"]) == pytest.approx(0.2, abs=1e-6)


def test_objectives_may_be_drawn_by_their_weights() -> None:
    """q = (1 − ε) softmax + ε/m is asked for; the drawn ones are weighted alike."""
    weighter = Factored(END, [A, B, C], lr=1.0, end_task_lr=0.0, n=2, draw="weights", explore=0.3)
    weighter.observe(["a"], cosines(a=1.0))
    total = math.e**3 + math.e + 1
    odds = {
        "a": 0.7 * math.e**3 / total + 0.1,
        "b": 0.7 * math.e / total + 0.1,
        "c": 0.7 / total + 0.1,
    }
    bench = RecordingWorkbench("end", ["a", "b", "c"])
    weighter.round(bench)
    assert bench.sample_weights == [pytest.approx(odds)]
    assert bench.coefficients == [{"end": 0.5, **dict.fromkeys(bench.samples[0], 0.25)}]
    fresh = Factored(END, [A, B, C], n=2, draw="weights", end_task_weight=0.4)
    assert fresh.weights() == pytest.approx({"end": 0.4, "a": 0.2, "b": 0.2, "c": 0.2})
    before = weighter.weights()
    assert sum(before.values()) == pytest.approx(1)


def _learned(n: int) -> tuple[Factored, dict[str, float]]:
    """A weighter with unequal weights that learns no more, and q_k of its objectives."""
    weighter = Factored(END, [A, B, C], lr=0.5, end_task_lr=0.0, n=n, draw="weights")
    weighter.observe(["a"], cosines(a=1.0))
    odds = {name: 2 * weight for name, weight in weighter.weights().items() if name != "end"}
    return weighter, odds


@pytest.mark.parametrize("n", [1, 2])
def test_the_expected_coefficient_is_the_chance_to_be_drawn_over_n(n: int) -> None:
    """Over 4,000 draws, against the sum over all orders in which n are drawn one by one.

    For n = 1 it is q_k itself; with n = 2 of 3 it is closer to even than q_k, as it must be.
    """
    weighter, odds = _learned(n)
    chances = dict.fromkeys(odds, 0.0)
    for order in itertools.permutations(odds, n):
        chance, left = 1.0, 1.0
        for name in order:
            chance, left = chance * odds[name] / left, left - odds[name]
        for name in order:
            chances[name] += chance
    if n == 1:
        assert chances == pytest.approx(odds)
    bench = RecordingWorkbench("end", ["a", "b", "c"], measure=_silent)
    for _ in range(4000):
        weighter.round(bench)
    got = Counter[str]()
    for coefficients in bench.coefficients:
        got.update(coefficients)
    for name, chance in chances.items():
        expected = 0.5 * chance / n
        error = 0.5 / n * math.sqrt(chance * (1 - chance) / 4000)
        assert abs(got[name] / 4000 - expected) < 4 * error


def _silent(coefficients: Any) -> StepSignals:
    return StepSignals(dict.fromkeys(coefficients, 0.0), {}, {}, {"cosine": 0.0}, 1.0)


def test_where_all_are_trained_there_is_no_draw_to_weight() -> None:
    """Otherwise all weights would be equal, whatever was learned."""
    drawn, plain = Factored(END, [A, B], draw="weights"), Factored(END, [A, B])
    for weighter in (drawn, plain):
        weighter.observe(["a", "b"], cosines(a=1.0, b=0.0))
    assert drawn.sample_weights() is None
    assert drawn.coefficients(["a", "b"]) == plain.coefficients(["a", "b"])


@pytest.mark.parametrize(
    "options",
    [
        {"share": "median"},
        {"share": True},
        *({"floor": value} for value in (-0.1, 1.1, "low", math.nan)),
        *({"evenness": value} for value in (-1, math.inf)),
        {"draw": "by weights"},
        *({"explore": value} for value in (0, 1.5, None)),
        {"floor": 0.1, "draw": "weights"},
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"option {next(iter(options))}"):
        Factored(END, [A, B, C], **options)
