"""Rows that are prepared while an accelerator computes change nothing but the time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.training import Trainer
from tests.training.trainers import build

ROUNDS = 6

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "single-task": {"weighter": "single-task"},
    "balanced": {"weighter": "single-task", "balanced_rows": True},
    "static": {"weighter": "static"},
    "sampled": {"weighter": "static", "set": {"static": {"n": 2}}},
    "learned": {"weighter": "factored", "set": {"factored": {"n": 2}}},
    "seldom": {"weighter": "factored", "meta_every": 3},
    "by weight": {"weighter": "factored", "set": {"factored": {"draw": "weights", "n": 2}}},
    "draws": {"weighter": "factored", "draws_per_step": 2},
    "trials": {
        **{"weighter": "alpha-vil", "space": "x+y+z"},
        "set": {"alpha-vil": {"n": 2, "fraction": 0.2, "tuning_steps": 1}},
    },
    "parts": {"weighter": "static", "micro_batch_size": 3},
    "losses": {"weighter": "uncertainty"},
}


def states(trainer: Trainer, rounds: int = ROUNDS) -> list[Mapping[str, Any]]:
    """What a checkpoint would hold of the draws after each round, and how training went."""
    found = []
    for _ in range(rounds):
        trainer.bench.begin_round()
        trainer.weighter.round(trainer.bench)
        state = trainer.bench.state_dict(whole=False)
        kept = {name: state[name] for name in ("draws", "streams")}
        found.append(kept | {"losses": trainer.bench.losses.means()})
    return found


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, Mapping):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_changes(options: dict[str, Any], setting: str) -> None:
    """Not a draw, not a loss, and not what a checkpoint between any two steps would hold."""
    chosen = {"space": "td", "dropout": 0.1} | SETTINGS[setting]
    trainer = build(options, **chosen)[2]
    expected = states(trainer)
    assert trainer.bench.prepared.used == 0
    trainer = build(options, **chosen)[2]
    trainer.bench.prepared.enabled = True
    assert_same(states(trainer), expected)
    assert trainer.bench.prepared.used > 0


@pytest.mark.parametrize("setting", ["single-task", "balanced", "static", "sampled", "parts"])
def test_what_is_known_is_not_prepared_in_vain(options: dict[str, Any], setting: str) -> None:
    trainer = build(options, space="td", steps=ROUNDS, **SETTINGS[setting])[2]
    trainer.bench.prepared.enabled = True
    states(trainer)
    prepared = trainer.bench.prepared
    # Nothing comes after the last step of the run.
    assert prepared.used % (ROUNDS - 1) == 0 or setting == "sampled"
    assert prepared.used >= ROUNDS - 1
    assert prepared.dropped == 0


def test_a_stream_that_moves_on(options: dict[str, Any], task_files: Path) -> None:
    """Rows of the next block are not prepared from the last one, and no state is ahead of them."""
    settings = {"s2orc": {"stream": True, "buffer": 16}}
    chosen = {"space": "dapt", "domain": task_files / "domain.txt", "set": settings}
    trainer = build(options, **chosen)[2]
    expected = states(trainer)
    trainer = build(options, **chosen)[2]
    trainer.bench.prepared.enabled = True
    assert_same(states(trainer), expected)
    places = [state["streams"]["s2orc"]["lanes"] for state in expected]
    assert [places.count(place) for place in places] == [1, 2, 2, 2, 2, 1]
    prepared = trainer.bench.prepared
    assert prepared.used > 0
    assert prepared.dropped > 0


def test_weights_that_move_cost_some_of_what_is_prepared(options: dict[str, Any]) -> None:
    """An objective whose share of the rows has changed, and what is drawn after it."""
    chosen = SETTINGS["learned"] | {"aux_batch_size": 24}
    trainer = build(options, space="td", **chosen)[2]
    trainer.bench.prepared.enabled = True
    states(trainer, 12)
    prepared = trainer.bench.prepared
    assert prepared.dropped > 0
    # The end task's rows come first and are always used.
    assert prepared.used >= 11


def test_dev_evaluations_between_steps(options: dict[str, Any]) -> None:
    chosen = {"space": "td", "weighter": "factored", "steps": 4, "eval_every": 1}
    _, _, trainer, modules, records = build(options, **chosen)
    trainer.train()
    _, _, again, modules_again, records_again = build(options, **chosen)
    again.bench.prepared.enabled = True
    again.train()
    assert again.bench.prepared.used > 0
    assert records_again.weights == records.weights
    assert records_again.dev == records.dev
    for name, module in modules.items():
        assert_same(dict(modules_again[name].state_dict()), dict(module.state_dict()))
