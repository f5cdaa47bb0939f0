"""The core's own weighter."""

from aang_testing import RecordingWorkbench, check_weighter

from aang_core import TaskCard
from tests.support.training import SingleTask

END = TaskCard("end")
THREE = [TaskCard(name) for name in "abc"]


def bench() -> RecordingWorkbench:
    return RecordingWorkbench("end", ["a", "b", "c"])


def test_it_keeps_the_contract() -> None:
    check_weighter(SingleTask)


def test_it_asks_for_no_signal_and_so_pays_for_none() -> None:
    assert SingleTask.signals == frozenset()
    recorded = bench()
    made = SingleTask(END, THREE)
    for _ in range(3):
        made.round(recorded)
    assert recorded.signals == [frozenset()] * 3


def test_it_trains_the_end_task_alone() -> None:
    recorded = bench()
    weighter = SingleTask(END, THREE)
    weighter.round(recorded)
    assert not SingleTask.uses_auxiliaries
    assert recorded.samples == []
    assert recorded.coefficients == [{"end": 1.0}]
    assert weighter.weights() == {"end": 1.0, "a": 0.0, "b": 0.0, "c": 0.0}
