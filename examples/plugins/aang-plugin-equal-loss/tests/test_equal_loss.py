"""The contract of every weighter, what else aang check-plugin looks at, and what is its own."""

from collections.abc import Mapping

import pytest
from aang_plugin_equal_loss import EqualLoss
from aang_testing import RecordingWorkbench
from aang_testing.conformance import Check, checks_of

from aang_core import StepSignals, TaskCard

NAME, OPTIONS = "aang-plugin-equal-loss", {"equal-loss": {"memory": 0.0, "n": 1}}


@pytest.mark.parametrize(
    "check", [*checks_of(NAME), *checks_of(NAME, OPTIONS)], ids=lambda check: check.name
)
def test_it_keeps_its_contracts(check: Check) -> None:
    check.run()


def test_weights_by_hand() -> None:
    """Losses 1, 2 and 4 weigh 4 : 2 : 1; after a second step with half of them the same again."""
    answers = iter([1.0, 0.5])

    def measure(coefficients: Mapping[str, float]) -> StepSignals:
        scale = next(answers)
        loss = {"end": scale, "a": 2 * scale, "b": 4 * scale}
        return StepSignals({}, {}, {}, {"loss": 1.0}, None, loss)

    weighter = EqualLoss(TaskCard("end"), [TaskCard("a"), TaskCard("b")], memory=0.5)
    bench = RecordingWorkbench("end", ["a", "b"], measure=measure)
    assert weighter.weights() == pytest.approx({"end": 1 / 3, "a": 1 / 3, "b": 1 / 3})
    for _ in range(2):
        weighter.round(bench)
        assert weighter.weights() == pytest.approx({"end": 4 / 7, "a": 2 / 7, "b": 1 / 7})
    assert weighter.state_dict() == {"means": {"end": 0.75, "a": 1.5, "b": 3.0}}
    assert bench.signals == [{"loss"}] * 2
