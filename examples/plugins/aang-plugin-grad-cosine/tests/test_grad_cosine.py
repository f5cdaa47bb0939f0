"""The contract of every weighter, what else aang check-plugin looks at, and what is its own."""

from collections.abc import Mapping

import pytest
from aang_plugin_grad_cosine import GradCosine
from aang_testing import RecordingWorkbench
from aang_testing.conformance import Check, checks_of

from aang_core import StepSignals, TaskCard


@pytest.mark.parametrize(
    "check", checks_of("aang-plugin-grad-cosine"), ids=lambda check: check.name
)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


def test_an_objective_counts_while_its_cosine_is_positive() -> None:
    """Three steps by hand: the share of what does not count goes to the end task."""
    answers = iter([{"a": 0.5, "b": -0.1}, {"a": 0.0, "b": -0.1}, {"a": -0.2, "b": 0.1}])

    def measure(coefficients: Mapping[str, float]) -> StepSignals:
        cosine = {"end": 0.3, **next(answers)}
        return StepSignals(cosine, cosine, cosine, {"cosine": 0.0}, 1.0)

    weighter = GradCosine(TaskCard("end"), [TaskCard("a"), TaskCard("b")])
    bench = RecordingWorkbench("end", ["a", "b"], measure=measure)
    seen = []
    for _ in range(3):
        weighter.round(bench)
        seen.append(weighter.weights())
    assert seen == [
        {"end": 0.75, "a": 0.25, "b": 0},
        {"end": 1, "a": 0, "b": 0},
        {"end": 0.75, "a": 0, "b": 0.25},
    ]
    assert bench.coefficients == [{"end": 0.5, "a": 0.25, "b": 0.25}, *seen[:2]]
    assert bench.signals == [{"cosine"}] * 3
