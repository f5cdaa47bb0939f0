"""The contract of every weighter, what else aang check-plugin looks at, and what is its own."""

import pytest
from aang_plugin_a_gem import AGem
from aang_testing import RecordingWorkbench
from aang_testing.conformance import Check, checks_of

from aang_core import TaskCard


@pytest.mark.parametrize("check", checks_of("aang-plugin-a-gem"), ids=lambda check: check.name)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


@pytest.mark.parametrize(
    ("a", "b", "end"),
    [
        # Together (0, 3): across the end task's gradient, which stays as it is.
        ([1.0, 1.0], [-1.0, 2.0], 1.0),
        # Together (-4, 1): its part against (2, 0) is -2 times that.
        ([-5.0, 1.0], [1.0, 0.0], 3.0),
    ],
)
def test_a_step_by_hand(a: list[float], b: list[float], end: float) -> None:
    vectors = {"end": [2.0, 0.0], "a": a, "b": b}
    bench = RecordingWorkbench("end", ["a", "b"], gradient=vectors.__getitem__)
    AGem(TaskCard("end"), [TaskCard("a"), TaskCard("b")]).round(bench)
    assert bench.descents == [pytest.approx({"end": end / 3, "a": 1 / 3, "b": 1 / 3})]
    assert bench.of_heads == [pytest.approx(dict.fromkeys(vectors, 1 / 3))]
    step = [sum(bench.descents[0][t] * v[i] for t, v in vectors.items()) for i in range(2)]
    assert step[0] * 2.0 > 0  # never against the end task
