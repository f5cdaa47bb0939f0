"""The weighter that learns nothing: ``static``."""

from typing import Any

import pytest
from aang_plugin_tartan.static import Static
from aang_testing import RecordingWorkbench, check_weighter

from aang_core import ConfigError, TaskCard

END = TaskCard("end")
THREE = [TaskCard(name) for name in "abc"]


def bench() -> RecordingWorkbench:
    return RecordingWorkbench("end", ["a", "b", "c"])


def test_it_keeps_the_contract() -> None:
    check_weighter(Static)
    check_weighter(lambda end, auxiliaries: Static(end, auxiliaries, n=2))
    check_weighter(lambda end, auxiliaries: Static(end, auxiliaries, end_task_weight=0.9, n=1))
    check_weighter(lambda end, auxiliaries: Static(end, auxiliaries, n=2, alternate=True))
    check_weighter(
        lambda end, auxiliaries: Static(
            end, auxiliaries, weights={card.name: i for i, card in enumerate(auxiliaries)}
        )
    )


def test_it_asks_for_no_signal_and_so_pays_for_none() -> None:
    assert Static.signals == frozenset()
    recorded = bench()
    made = Static(END, THREE)
    for _ in range(3):
        made.round(recorded)
    assert recorded.signals == [frozenset()] * 3


def test_by_default_all_tasks_weigh_the_same() -> None:
    recorded = bench()
    weighter = Static(END, THREE)
    weighter.round(recorded)
    assert recorded.coefficients == [{"end": 0.25, "a": 0.25, "b": 0.25, "c": 0.25}]
    assert weighter.weights() == {"end": 0.25, "a": 0.25, "b": 0.25, "c": 0.25}


def test_with_two_of_three_sampled_the_end_task_has_a_third() -> None:
    recorded = bench()
    weighter = Static(END, THREE, n=2)
    weighter.round(recorded)
    first, second = recorded.samples[0]
    third = pytest.approx(1 / 3)
    assert recorded.coefficients == [{"end": third, first: third, second: third}]
    assert weighter.weights() == {"end": third, **dict.fromkeys("abc", pytest.approx(2 / 9))}


def test_explicit_weights_are_relative_to_each_other_and_share_what_the_end_task_leaves() -> None:
    weighter = Static(END, THREE, weights={"a": 3, "b": 0}, end_task_weight=0.6)
    # 0.4 in the proportion 3 : 0 : 1.
    assert weighter.weights() == pytest.approx({"end": 0.6, "a": 0.3, "b": 0.0, "c": 0.1})
    assert weighter.coefficients(["b", "c"]) == pytest.approx({"end": 0.6, "b": 0.0, "c": 0.4})


def test_a_step_whose_objectives_all_weigh_nothing_trains_the_end_task() -> None:
    weighter = Static(END, THREE, weights={"a": 0}, n=1)
    assert weighter.coefficients(["a"]) == {"end": 1.0, "a": 0.0}


def test_end_task_and_objectives_take_turns_by_lambda() -> None:
    """A step trains one of the two alone, and their mean is that of the weighted loss."""
    recorded = bench()
    weighter = Static(END, THREE, weights={"a": 3}, end_task_weight=0.3, alternate=True)
    for _ in range(400):
        weighter.round(recorded)
    of_objectives = {"end": 0.0, "a": 0.6, "b": 0.2, "c": 0.2}
    alone = [draw == {"end": 1.0} for draw in recorded.coefficients]
    assert all(
        draw == pytest.approx(of_objectives)
        for draw, end in zip(recorded.coefficients, alone, strict=True)
        if not end
    )
    assert sum(alone) / 400 == pytest.approx(0.3, abs=0.07)
    assert weighter.weights() == pytest.approx({"end": 0.3, "a": 0.42, "b": 0.14, "c": 0.14})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "option n"),
        ({"n": 1.5}, "option n"),
        ({"n": True}, "option n"),
        ({"end_task_weight": 1.1}, "end_task_weight"),
        ({"end_task_weight": "half"}, "end_task_weight"),
        ({"weights": {"a": -1}}, r"weights\['a'\]"),
        ({"weights": {"a": float("nan")}}, r"weights\['a'\]"),
        ({"weights": {"a": float("inf")}}, r"weights\['a'\]"),
        ({"weights": {"z": 1}}, "'z', which is not an objective of this run; there are: a, b, c"),
        ({"weights": {"end": 1}}, "give its weight as end_task_weight"),
        ({"weights": [1, 2]}, "option weights"),
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Static(END, THREE, **options)
