"""Arithmetic of a step, counted: against the stored baseline and against plain training."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.step_cost import OURS, settings_of
from benchmarks.steps.measure import count_flops, peak_memory

pytestmark = pytest.mark.release

BASELINE: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "baseline.json").read_text(encoding="utf-8")
)
SMALL = list(settings_of(("2x64",), (), False))


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    return {s.name: {way: count_flops(s, way) for way in OURS} for s in SMALL}


@pytest.mark.parametrize("way", OURS)
def test_no_way_costs_more_than_it_did(counted: dict[str, dict[str, int]], way: str) -> None:
    """A count more than 2% above the baseline needs a reason, and then a new baseline."""
    for name, cell in counted.items():
        assert cell[way] <= 1.02 * BASELINE[name][way]["flops"], name


@pytest.mark.parametrize("way", ["stream", "packed"])
def test_signals_cost_no_more_than_dev_rows(counted: dict[str, dict[str, int]], way: str) -> None:
    """Both engines stay within 5% of multitask training with dev rows, whatever n is."""
    for cell in counted.values():
        assert cell[way] <= 1.05 * cell["floor"]


def test_static_pays_for_no_signals(counted: dict[str, dict[str, int]]) -> None:
    """A weighter that asks for nothing costs exactly what plain multitask training costs."""
    for cell in counted.values():
        assert cell["static"] == cell["plain"]


def test_the_stream_engine_needs_less_memory_than_plain_training() -> None:
    """One task's activations and two gradients are less than the activations of all rows."""
    setting = next(iter(settings_of(("4x256",), (6,), False)))
    assert peak_memory(setting, "stream") <= peak_memory(setting, "plain")
