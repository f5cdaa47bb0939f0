"""Running out of memory in a step: the same rows again, fewer at once, and the same result."""

import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from aang_core import ConfigError
from tests.support.gradients import StreamEngine
from tests.support.plugins import OutOfMemoryError
from tests.support.runs import check_memory, lowered, memory
from tests.support.training import (
    Trainer,
    is_out_of_memory,
    load_checkpoint,
    running_out_told,
    save_checkpoint,
)
from tests.training.conftest import Aang
from tests.training.trainers import build


@pytest.fixture(autouse=True)
def _less_to_collect() -> Iterator[None]:
    """Every attempt after the first collects garbage, which takes long among all that is there."""
    gc.freeze()
    yield
    gc.unfreeze()


def greedy(module: nn.Module, rows: int) -> None:
    """Let the module ask the allocator for more than there is when it is given more rows."""

    def before(_: nn.Module, __: Any, inputs: dict[str, Any]) -> None:
        if module.training and len(inputs["input_ids"]) > rows:
            torch.empty(2**60)

    module.register_forward_pre_hook(before, with_kwargs=True)


def state_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": value.clone()
        for name, module in trainer.bench.modules.items()
        for key, value in module.state_dict().items()
    }


def rounds(trainer: Trainer, count: int) -> None:
    for _ in range(count):
        trainer.bench.begin_round()
        trainer.weighter.round(trainer.bench)


@pytest.mark.parametrize(
    ("weighter", "gradients", "dev_head", "rows", "micro"),
    [
        ("static", "stream", "own-rows", 4, 4),
        ("factored", "stream", "remembered", 2, 2),
        ("factored", "packed", "remembered", 7, 6),
        ("alpha-vil", "stream", "own-rows", 4, 4),
    ],
)
def test_the_result_is_that_of_the_smaller_micro_batch(
    options: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    weighter: str,
    gradients: str,
    dev_head: str,
    rows: int,
    micro: int,
) -> None:
    """Bit for bit: rows, corruptions, dropout, dev head and weights."""
    more: dict[str, Any] = {"weighter": weighter, "gradients": gradients, "dev_head": dev_head}
    if weighter == "alpha-vil":
        brief = {"n": 1, "fraction": 0.1, "tuning_steps": 2}
        more |= {"space": "x+y+z", "set": {"alpha-vil": brief}}
    else:
        more["set"] = {weighter: {"n": 3}}
    # With rows to remember, signals are measured from the third round on.
    count = 3 if dev_head == "remembered" else 2
    _, _, small, _, _ = build(options, **more, micro_batch_size=micro)
    rounds(small, count)
    _, _, trainer, _, _ = build(options, **more)
    greedy(trainer.bench.body, rows)
    with caplog.at_level(logging.WARNING):
        rounds(trainer, count)
    assert trainer.bench.rows_at_once == micro
    assert f"at most {micro} at once from now on" in caplog.text
    assert caplog.text.count("not enough memory") == {4: 1, 2: 2, 6: 2}[micro]
    assert trainer.bench.last == small.bench.last
    expected = state_of(small)
    for name, value in state_of(trainer).items():
        assert torch.equal(value, expected[name]), name


def test_a_checkpoint_keeps_the_smaller_number(
    options: dict[str, Any],
    tmp_path: Path,
) -> None:
    """A resumed run then continues as it would have without the interruption."""
    _, _, trainer, _, _ = build(options, weighter="static", set={"static": {"n": 2}})
    greedy(trainer.bench.body, 4)
    rounds(trainer, 1)
    save_checkpoint(tmp_path, trainer)
    rounds(trainer, 2)
    _, _, again, _, _ = build(options, weighter="static", set={"static": {"n": 2}}, seed=9)
    load_checkpoint(tmp_path, again)
    assert again.bench.rows_at_once == 4
    rounds(again, 2)
    expected = state_of(trainer)
    assert all(torch.equal(value, expected[name]) for name, value in state_of(again).items())


def test_one_row_that_does_not_fit_is_told(options: dict[str, Any]) -> None:
    _, _, trainer, _, _ = build(options, weighter="single-task")
    greedy(trainer.bench.body, 0)
    with pytest.raises(OutOfMemoryError, match=r"step 1: not enough memory for one row.*allocate"):
        rounds(trainer, 1)


def test_elsewhere_it_is_told_too() -> None:
    with pytest.raises(OutOfMemoryError, match="not enough memory"), running_out_told():
        torch.empty(2**60)
    with pytest.raises(RuntimeError, match="shape"), running_out_told():
        torch.zeros(2) @ torch.zeros(3, 3)


def test_what_counts_as_running_out() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_a_model_that_cannot_fit_is_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """36 GB are kept for 1.5 billion parameters; of 24 GB, half a billion can be trained."""
    cpu, trained, copies = torch.device("cpu"), 1_500_000_000, 6
    monkeypatch.setattr(memory, "device_memory", lambda device: 24_000_000_000)
    with pytest.raises(ConfigError, match=r"1,500\.0 M .* 36\.00 GB .* cpu has 24\.00 GB; .* 780"):
        check_memory(trained, 0, copies, cpu)
    monkeypatch.setattr(memory, "device_memory", lambda device: 36_000_000_000)
    check_memory(trained, 0, copies, cpu)


@pytest.mark.parametrize(
    ("rows", "least", "recomputed", "options"),
    [
        (32, 1, False, ("--micro-batch-size", "16")),
        (32, 20, False, ("--save-memory",)),
        (1, 1, False, ("--save-memory",)),
        (1, 1, True, ()),
        (None, 1, False, ()),
    ],
)
def test_it_is_told_what_to_lower(
    rows: int | None, least: int, recomputed: bool, options: tuple[str, ...]
) -> None:
    error = OutOfMemoryError("step 3: not enough memory", rows=rows, least=least)
    assert lowered(error, save_memory=recomputed) == options


def test_a_run_goes_on_with_what_it_was_told(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the options with which the run is resumed, and with them it finishes."""
    run = tmp_path / "run"
    step = StreamEngine.step

    def full(engine: StreamEngine, *rows: Any, **options: Any) -> Any:
        step(engine, *rows, **options)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")

    monkeypatch.setattr(StreamEngine, "step", full)
    done = aang("train", *train_options, "--space", "tapt", "--steps", 1, "--out", run)
    assert done.status == 2
    assert "not enough memory for one row at a time" in done.err
    assert f"aang train --resume {run} --save-memory" in done.err
    monkeypatch.setattr(StreamEngine, "step", step)
    done = aang("train", "--resume", run, "--save-memory", "--micro-batch-size", 2)
    assert done.status == 0, done.err
    assert "--micro-batch-size was None when the run began and is 2" in done.err
    assert (run / "result.json").is_file()
