"""META-TARTAN against Algorithm 1 worked out by hand."""

import math
from typing import Any

import pytest
from aang_plugin_tartan.meta_tartan import MetaTartan
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, StepSignals, TaskCard

END = TaskCard("end")
THREE = [TaskCard(name) for name in "abc"]


def cosines(**values: float) -> StepSignals:
    return StepSignals(cosine=values, dot={}, norm={}, auxiliary={"cosine": 0.0}, dev_norm=1.0)


def test_it_keeps_the_contract() -> None:
    check_weighter(MetaTartan)
    check_weighter(lambda end, auxiliaries: MetaTartan(end, auxiliaries, lr=10.0, n=2))


def test_all_tasks_start_with_the_same_weight() -> None:
    assert MetaTartan(END, THREE).weights() == {"end": 0.25, "a": 0.25, "b": 0.25, "c": 0.25}


def test_two_steps_by_hand() -> None:
    weighter = MetaTartan(END, THREE, lr=0.5)
    answers = iter([cosines(end=0.8, a=0.4, b=-0.6, c=0.0), cosines(end=-0.2, a=0.2, b=0.2, c=1.0)])
    bench = RecordingWorkbench("end", ["a", "b", "c"], measure=lambda _: next(answers))
    weighter.round(bench)
    # η times the cosines.
    assert weighter.record() == {"logits": {"end": 0.4, "a": 0.2, "b": -0.3, "c": 0.0}}
    # e^0.4, e^0.2, e^-0.3, 1 = 1.491825, 1.221403, 0.740818, 1; they sum to 4.454046.
    expected = {"end": 0.334937, "a": 0.274223, "b": 0.166325, "c": 0.224515}
    assert weighter.weights() == pytest.approx(expected, abs=1e-6)
    weighter.round(bench)
    # The second step trained with the weights that the first had left.
    assert bench.coefficients[0] == dict.fromkeys(["end", "a", "b", "c"], 0.25)
    assert bench.coefficients[1] == pytest.approx(expected, abs=1e-6)
    logits = {"end": 0.3, "a": 0.3, "b": -0.2, "c": 0.5}
    assert weighter.record()["logits"] == pytest.approx(logits)
    assert bench.signals == [frozenset({"cosine"})] * 2


def test_a_sampled_step_normalises_over_its_own_tasks_and_moves_no_other() -> None:
    weighter = MetaTartan(END, THREE, lr=1.0, n=2)
    assert weighter.coefficients(["a", "c"]) == pytest.approx(
        {"end": 1 / 3, "a": 1 / 3, "c": 1 / 3}
    )
    weighter.observe(["a", "c"], cosines(end=0.0, a=math.log(2), c=0.0))
    assert weighter.record() == {"logits": {"end": 0.0, "a": math.log(2), "b": 0.0, "c": 0.0}}
    assert weighter.coefficients(["a", "b"]) == pytest.approx({"end": 0.25, "a": 0.5, "b": 0.25})
    assert weighter.weights() == pytest.approx({"end": 0.2, "a": 0.4, "b": 0.2, "c": 0.2})


def test_the_state_of_a_run_over_other_tasks_is_refused() -> None:
    state = MetaTartan(END, THREE).state_dict()
    with pytest.raises(ConfigError, match=r"differ in: c\."):
        MetaTartan(END, THREE[:2]).load_state_dict(state)


@pytest.mark.parametrize("lr", [-0.1, math.nan, math.inf, "0.1", True, None])
def test_a_senseless_step_size_is_refused(lr: Any) -> None:
    with pytest.raises(ConfigError, match="option lr"):
        MetaTartan(END, THREE, lr=lr)
