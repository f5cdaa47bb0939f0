"""AANG's factored weights against Algorithm 1 worked out by hand."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from aang_plugin_factored.factored import Factored
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, StepSignals, TaskCard

END = TaskCard("end")
A = TaskCard("a", {"transform": "mask", "output": "denoise"})
B = TaskCard("b", {"transform": "mask", "output": "end-task"})
C = TaskCard("c", {"transform": "no-op", "output": "end-task"})


def cosines(auxiliary: float = 0.0, **values: float) -> StepSignals:
    return StepSignals(values, {}, {}, {"cosine": auxiliary}, 1.0)


def test_it_keeps_the_contract() -> None:
    check_weighter(Factored)
    check_weighter(lambda end, auxiliaries: Factored(end, auxiliaries, n=None, lr=10.0))
    check_weighter(
        lambda end, auxiliaries: Factored(end, auxiliaries, end_task_lr=10.0, end_task_weight=0.99)
    )


def test_it_starts_with_equal_objectives_and_the_given_end_task_weight() -> None:
    weighter = Factored(END, [A, B, C], end_task_weight=0.7)
    assert weighter.weights() == pytest.approx({"end": 0.7, "a": 0.1, "b": 0.1, "c": 0.1})
    assert weighter.record() == {
        "end_task_weight": pytest.approx(0.7),
        "factors": {
            "all": {"a": 0.0, "b": 0.0, "c": 0.0},
            "transform": {"mask": 0.0, "no-op": 0.0},
            "output": {"denoise": 0.0, "end-task": 0.0},
        },
        "logits": {"primary": pytest.approx(math.log(7 / 3)), "auxiliary": 0.0},
    }


def test_two_steps_by_hand() -> None:
    weighter = Factored(END, [A, B, C], lr=2.0, end_task_lr=0.1, n=2)
    assert weighter.coefficients(["a", "b"]) == {"end": 0.5, "a": 0.25, "b": 0.25}

    weighter.observe(["a", "b"], cosines(end=0.4, auxiliary=0.2, a=0.5, b=-0.25))
    record = weighter.record()
    assert record["factors"] == {
        "all": {"a": 1.0, "b": -0.5, "c": 0.0},
        "transform": {"mask": 0.5, "no-op": 0.0},  # 2 (0.5 - 0.25): both objectives mask
        "output": {"denoise": 1.0, "end-task": -0.5},
    }
    assert record["logits"] == pytest.approx({"primary": 0.04, "auxiliary": 0.02})
    # 1 / (1 + e^-0.02) = 1 / 1.980199
    assert record["end_task_weight"] == pytest.approx(0.505000, abs=1e-6)

    # Logits are b: -0.5 + 0.5 - 0.5 and c: 0 + 0 - 0.5, so equal.
    assert weighter.coefficients(["b", "c"]) == pytest.approx(
        {"end": 0.505000, "b": 0.247500, "c": 0.247500}, abs=1e-6
    )
    weighter.observe(["b", "c"], cosines(end=-0.1, auxiliary=0.3, b=0.1, c=0.3))
    record = weighter.record()
    assert record["factors"]["all"] == pytest.approx({"a": 1.0, "b": -0.3, "c": 0.6})
    assert record["factors"]["transform"] == pytest.approx({"mask": 0.7, "no-op": 0.6})
    assert record["factors"]["output"] == pytest.approx({"denoise": 1.0, "end-task": 0.3})
    assert record["logits"] == pytest.approx({"primary": 0.03, "auxiliary": 0.05})
    # λ_e = 1 / (1 + e^0.02) = 1 / 2.020201 = 0.495000. Logits a: 2.7, b: 0.7, c: 1.5; e to them
    # 14.879732, 2.013753, 4.481689, which sum to 21.375174; shares 0.696122, 0.094210, 0.209668.
    assert weighter.weights() == pytest.approx(
        {"end": 0.495000, "a": 0.351541, "b": 0.047576, "c": 0.105882}, abs=2e-6
    )


def test_an_objective_that_was_never_sampled_moves_with_its_primitives() -> None:
    weighter = Factored(END, [A, B, C], lr=1.0)
    # Only b: it shares mask with a and end-task with c.
    weighter.observe(["b"], cosines(end=0.0, b=1.0))
    # Logits a: 1 (mask), b: 3 (own, mask, end-task), c: 1 (end-task).
    total = 2 * math.e + math.e**3
    expected = {"a": math.e / total, "b": math.e**3 / total, "c": math.e / total}
    weights = weighter.weights()
    assert {name: 2 * weights[name] for name in "abc"} == pytest.approx(expected)
    unrelated = TaskCard("d", {"transform": "replace", "output": "tf-idf"})
    weighter = Factored(END, [B, C, unrelated], lr=1.0)
    weighter.observe(["b"], cosines(end=0.0, b=1.0))
    assert weighter.weights()["c"] > weighter.weights()["d"]


def test_objectives_without_factors_have_their_own_alone() -> None:
    weighter = Factored(END, [A, TaskCard("plain")], lr=1.0)
    weighter.observe(["a", "plain"], cosines(end=0.0, a=0.5, plain=0.25))
    factors = weighter.record()["factors"]
    assert factors["all"] == {"a": 0.5, "plain": 0.25}
    assert factors["transform"] == {"mask": 0.5}
    # Logits a: 3 × 0.5, plain: 0.25.
    expected = math.exp(1.5) / (math.exp(1.5) + math.exp(0.25)) / 2
    assert weighter.weights()["a"] == pytest.approx(expected)


def test_primitives_of_the_same_name_in_two_stages_are_different() -> None:
    card = TaskCard("x", {"data": "task", "output": "task"})
    weighter = Factored(END, [card], lr=1.0)
    weighter.observe(["x"], cosines(end=0.0, x=1.0))
    factors = weighter.record()["factors"]
    assert factors == {"all": {"x": 1.0}, "data": {"task": 1.0}, "output": {"task": 1.0}}


def test_it_asks_for_cosines_and_samples_n_or_what_there_is() -> None:
    bench = RecordingWorkbench("end", ["a", "b", "c"])
    weighter = Factored(END, [A, B, C], n=2)
    weighter.round(bench)
    assert bench.signals == [frozenset({"cosine"})]
    assert len(bench.samples[0]) == 2
    assert Factored(END, [A, B]).sample_size == 2
    assert Factored(END, [A, B, C], n=None).sample_size == 3


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5)])
def test_weights_that_do_not_move_are_not_measured_for(rates: tuple[float, float]) -> None:
    """AANG's section 7.3: static weights save the meta-gradients."""
    lr, end_task_lr = rates
    weighter = Factored(END, [A, B, C], lr=lr, end_task_lr=end_task_lr)
    check_weighter(lambda end, others: Factored(end, others, lr=lr, end_task_lr=end_task_lr))
    bench = RecordingWorkbench("end", ["a", "b", "c"])
    weighter.round(bench)
    assert bench.signals == [frozenset() if rates == (0.0, 0.0) else frozenset({"cosine"})]


def test_the_state_of_another_space_is_refused() -> None:
    state = Factored(END, [A, B, C]).state_dict()
    with pytest.raises(ConfigError, match=r"differ in: all c, transform no-op\."):
        Factored(END, [A, B]).load_state_dict(state)


def test_a_stage_may_not_be_called_all() -> None:
    with pytest.raises(ConfigError, match="'all'"):
        Factored(END, [TaskCard("x", {"all": "y"})])


@pytest.mark.parametrize(
    "options",
    [
        *({"lr": value} for value in (-1, math.nan, math.inf, "1", True, None)),
        {"end_task_lr": -0.1},
        *({"n": value} for value in (0, -1, 2.0, "3", True)),
        *({"end_task_weight": value} for value in (0, 1, -0.5, math.nan, "0.5")),
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"option {name}"):
        Factored(END, [A, B, C], **options)


OWN = TaskCard("own", {"transform": "no-op", "output": "contrast"}, free=True)


@pytest.mark.parametrize("n", [1, 2])
def test_what_costs_no_pass_is_trained_in_every_step(n: int) -> None:
    bench = RecordingWorkbench("end", ["a", "own", "b", "c"])
    weighter = Factored(END, [A, OWN, B, C], n=n)
    for _ in range(20):
        weighter.round(bench)
    drawn = [set(step) - {"end", "own"} for step in bench.coefficients]
    assert all("own" in step for step in bench.coefficients)
    assert {len(names) for names in drawn} == {n}
    assert set().union(*drawn) == {"a", "b", "c"}
    assert all(math.fsum(step.values()) == pytest.approx(1) for step in bench.coefficients)
    assert weighter.record()["factors"]["all"]["own"] != 0


def test_what_costs_no_pass_starts_with_the_given_share() -> None:
    weighter = Factored(END, [A, OWN, B, C], n=2, free_share=0.75)
    # e^b / (e^b + 2) = 3/4, so b = ln 6.
    assert weighter.record()["factors"]["all"]["own"] == pytest.approx(math.log(6))
    assert weighter.coefficients(["own", "b", "c"]) == pytest.approx(
        {"end": 0.5, "own": 0.375, "b": 0.0625, "c": 0.0625}
    )
    # Of three others, two are in a step.
    rest = dict.fromkeys("abc", 0.125 / 3)
    assert weighter.weights() == pytest.approx({"end": 0.5, "own": 0.375, **rest})


def test_without_others_a_share_has_no_meaning() -> None:
    assert Factored(END, [OWN], free_share=0.75).record()["factors"]["all"] == {"own": 0.0}


def test_what_costs_no_pass_can_be_drawn_like_the_others() -> None:
    bench = RecordingWorkbench("end", ["a", "own", "b", "c"])
    weighter = Factored(END, [A, OWN, B, C], n=1, free="drawn")
    for _ in range(40):
        weighter.round(bench)
    assert {len(step) for step in bench.coefficients} == {2}
    assert any("own" in step for step in bench.coefficients)


def test_all_objectives_are_trained_where_n_covers_the_rest() -> None:
    both, alone = RecordingWorkbench("end", ["a", "own"]), RecordingWorkbench("end", ["own"])
    for n in (1, 5, None):
        Factored(END, [A, OWN], n=n).round(both)
        Factored(END, [OWN], n=n).round(alone)
    assert [set(step) for step in both.coefficients] == [{"end", "own", "a"}] * 3
    assert [set(step) for step in alone.coefficients] == [{"end", "own"}] * 3


def test_it_keeps_the_contract_with_objectives_that_cost_no_pass() -> None:
    def marked(end: TaskCard, auxiliaries: Sequence[TaskCard]) -> Factored:
        cards = [TaskCard(c.name, c.factors, free=i % 2 == 0) for i, c in enumerate(auxiliaries)]
        return Factored(end, cards, n=1)

    check_weighter(marked)


def test_free_is_always_or_drawn() -> None:
    with pytest.raises(ConfigError, match="free is 'never'; give always or drawn"):
        Factored(END, [OWN], free="never")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="free_share is 1; give a number above 0 and below 1"):
        Factored(END, [OWN], free_share=1)
