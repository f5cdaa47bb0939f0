"""Running out of memory in a step: the same rows again, fewer at once, and the same result."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from aang_core.errors import OutOfMemoryError
from aang_core.training.checkpoint import load_checkpoint, save_checkpoint
from aang_core.training.memory import is_out_of_memory, running_out_told
from aang_core.training.trainer import Trainer
from tests.training.trainers import build


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
        more["set"] = {"alpha-vil": {"n": 2, "fraction": 0.1}}
    else:
        more["set"] = {weighter: {"n": 3}}
    _, _, small, _, _ = build(options, **more, micro_batch_size=micro)
    rounds(small, 3)
    _, _, trainer, _, _ = build(options, **more)
    greedy(trainer.bench.body, rows)
    with caplog.at_level(logging.WARNING):
        rounds(trainer, 3)
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
