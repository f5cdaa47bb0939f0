"""Checkpoints whose checksums are right and whose contents are not: refused with what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from aang_core import DataError
from benchmarks.fuzzing.states import checkpoint_seeds, checkpointer_in, trainer
from tests.support.storage import CheckpointStore

Values = dict[str, Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a training with factored weights."""
    place = tmp_path_factory.mktemp("seeds")
    checkpoint_seeds(place, ["factored"])
    return place / "0" / "checkpoints" / "000001"


def change(name: str, value: object, *at: str | int) -> Callable[[Values, dict[str, Tensor]], None]:
    """Set a value of ``state.json``, or of ``clock.json`` if that is its name."""

    def edit(files: Values, tensors: dict[str, Tensor]) -> None:
        place = files[name]
        for key in at[:-1]:
            place = place[key]
        place[at[-1]] = value

    return edit


def tensor(
    name: str, make: Callable[[Tensor], Tensor]
) -> Callable[[Values, dict[str, Tensor]], None]:
    def edit(files: Values, tensors: dict[str, Tensor]) -> None:
        tensors[name] = make(tensors[name])

    return edit


STATE, CLOCK = "state.json", "clock.json"
WRONG: dict[str, tuple[Callable[[Values, dict[str, Tensor]], None], str]] = {
    "a step of a googol": (change(STATE, 10**300, "steps"), "'steps' should be a whole number"),
    "a step that is a text": (change(STATE, "3", "steps"), "'steps' should be a whole number"),
    "a step before the first": (change(STATE, -1, "steps"), "'steps' should be a whole number"),
    "steps that are missing": (lambda f, t: f[STATE].pop("steps"), "'steps' is missing"),
    "a list for the counts": (change(STATE, [], "numbers"), "'numbers' should be values by name"),
    "a score that is not a number": (
        change(STATE, float("nan"), "progress", "best_score"),
        "'best_score' should be a finite number",
    ),
    "no best state": (
        change(STATE, {}, "progress", "best_state"),
        "'best_state' should be the tensors of body and head",
    ),
    "a position beyond the order": (
        change(STATE, 14, "draws", "rows", "end-task", "position"),
        "'position' should be a whole number from 0 to 13",
    ),
    "an order with a row twice": (
        tensor("draws|rows|end-task|order", torch.zeros_like),
        "'order' should be the numbers of all rows",
    ),
    "an order with a row too many": (
        tensor("draws|rows|end-task|order", lambda t: t + 1),
        "'order' should be the numbers of all rows",
    ),
    "a generator that is none": (
        tensor("draws|generators|bench", torch.zeros_like),
        "RuntimeError: Invalid mt19937 state",
    ),
    "a parameter of another shape": (
        tensor("module|body|0.weight", lambda t: t[:1].contiguous()),
        r"'body\|0.weight' should be float32 \[4, 1\] and is float32 \[1, 1\]",
    ),
    "a moment of another shape": (
        tensor("optimizer|body|0.weight|exp_avg", lambda t: t[:1].contiguous()),
        "'exp_avg' should be float32",
    ),
    "a moment that is missing": (
        lambda f, t: f[STATE]["optimizer"]["body|0.weight"].pop("exp_avg"),
        "'optimizer' should be the moments exp_avg, exp_avg_sq, step",
    ),
    "a schedule with too few rates": (
        change(STATE, [0.1], "schedule", "_last_lr"),
        "'_last_lr' should be 4 learning rates",
    ),
    "signals of no step": (change(STATE, [{}], "held_signals"), "'held_signals' should be"),
    "a weight that is a text": (
        change(STATE, "much", "weighter", "logits", "primary"),
        "restoring its state",
    ),
    "a tensor that is missing": (lambda f, t: t.pop("module|body|0.weight"), "KeyError"),
    "a clock that runs backwards": (change(CLOCK, -1.0, "seconds"), "'seconds' should be"),
    "a list": (lambda f, t: f.update({STATE: []}), "another version of AANG"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contents_are_named(saved: Path, tmp_path: Path, name: str) -> None:
    edit, message = WRONG[name]
    files = {n: json.loads((saved / n).read_text()) for n in (STATE, CLOCK)}
    tensors = load_file(saved / "state.safetensors")
    edit(files, tensors)

    def write(folder: Path) -> None:
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content))
        save_file(tensors, folder / "state.safetensors")
        logs = {"metrics.jsonl": {"bytes": 0, "sha256": ""}}
        (folder / "logs.json").write_text(json.dumps(logs))

    CheckpointStore(tmp_path / "checkpoints").save(write)
    checkpointer = checkpointer_in(tmp_path)
    with pytest.raises(DataError, match=message) as error:
        checkpointer.load(trainer("factored"))
    assert "\n" not in str(error.value)
    assert "checkpoints/000001: " in str(error.value)


def test_nothing_but_the_numbers_of_a_schedule_is_taken_over(saved: Path) -> None:
    """torch's own method would replace any attribute that the state names."""
    made = trainer("factored").bench.optimization
    state = json.loads((saved / STATE).read_text())["schedule"]
    made.load_schedule(state | {"optimizer": 7, "lr_lambdas": [None] * 4})
    assert made.schedule.optimizer is made.optimizer
    made.catch_up(10**12)
    assert made.schedule.last_epoch == 10**12
