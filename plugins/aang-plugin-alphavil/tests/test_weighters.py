"""What every weighter keeps to, and options that are refused."""

from typing import Any

import pytest
from aang_plugin_alphavil.alpha_vil import AlphaVil
from aang_plugin_alphavil.diw import Diw
from aang_testing import check_weighter

from aang_core import AangError, ConfigError, DevLossAlong, TaskCard
from tests.support.plugins import RecordingWorkbench

CARDS = [TaskCard("end"), TaskCard("a"), TaskCard("b")]


def test_alpha_vil_keeps_to_what_weighters_keep_to() -> None:
    """Weights, state and declarations, whatever the tasks are."""
    check_weighter(AlphaVil)


def test_diw_keeps_to_what_weighters_keep_to() -> None:
    """Weights, state and declarations, whatever the tasks are."""
    check_weighter(Diw)


@pytest.mark.parametrize("kind", [AlphaVil, Diw])
@pytest.mark.parametrize(
    "options",
    [
        {"lr": -0.1},
        {"lr": "fast"},
        {"fraction": 0},
        {"fraction": 1.5},
        {"n": 0},
        {"n": True},
    ],
)
def test_options_out_of_range_are_refused(kind: Any, options: dict[str, Any]) -> None:
    """The message names the option and what to give."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        kind(CARDS[0], CARDS[1:], **options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AlphaVil, {"tuning_steps": -1}),
        (AlphaVil, {"momentum": 1.0}),
        (AlphaVil, {"dev_batches": 0}),
        (AlphaVil, {"dev_batches": "all"}),
        (Diw, {"tries": 0}),
    ],
)
def test_own_options_out_of_range_are_refused(kind: Any, options: dict[str, Any]) -> None:
    """The message names the option."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        kind(CARDS[0], CARDS[1:], **options)


class Diverged(RecordingWorkbench):
    """Whose dev loss is not finite."""

    def dev_loss(
        self, updates: Any, coefficients: Any, *, batches: int | None = None
    ) -> DevLossAlong:
        return DevLossAlong(float("nan"), [0.0] * len(updates))


@pytest.mark.parametrize("kind", [AlphaVil, Diw])
def test_divergence_is_told_and_gets_into_no_weight(kind: Any) -> None:
    """A dev loss that is not finite ends the run."""
    weighter = kind(CARDS[0], CARDS[1:])
    before = dict(weighter.weights())
    with pytest.raises(AangError, match="diverged"):
        weighter.round(Diverged("end", ["a", "b"], score=lambda coefficients: float("nan")))
    assert weighter.weights() == before


@pytest.mark.parametrize("kind", [AlphaVil, Diw])
def test_a_state_of_other_tasks_is_refused(kind: Any) -> None:
    """The message names a task that differs."""
    state = kind(CARDS[0], CARDS[1:]).state_dict()
    with pytest.raises(ConfigError, match=r"differ in: b\."):
        kind(CARDS[0], CARDS[1:2]).load_state_dict(state)
