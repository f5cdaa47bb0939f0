"""What memory a run needs by the cost model, and what to lower where there is less."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from aang.assembly.assembly import Assembly
from aang.config import TrainConfig
from aang.modeling.trained_part import layers_trained
from aang_core.errors import ConfigError, OutOfMemoryError
from aang_core.tasks.signals import AGAINST_DEV
from aang_core.training.memory import running_out_told
from aang_core.training.memory_cost import MemoryCost, device_memory, in_gigabytes

_ROOM = 0.9
"""The share of a device's memory that is counted on; its driver and kernels take the rest."""


def memory_cost(config: TrainConfig, assembly: Assembly) -> MemoryCost:
    """The memory that the main training of a run needs.

    Args:
        config: the run's options, with the precision that was chosen.
        assembly: its model, rows, tasks and weighter.
    """
    model = assembly.model
    modules = [model.body, model.classifier, *(task.head for task in assembly.auxiliaries)]
    parameters = {id(p): p for module in modules for p in module.parameters()}.values()
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    shape = model.body.base.config
    return MemoryCost(
        trained=trained,
        frozen=sum(p.numel() for p in parameters) - trained,
        copies=4 + bool(assembly.weighter.signals & AGAINST_DEV) + bool(assembly.auxiliaries),
        layers=layers_trained(model.body),
        hidden=int(shape.hidden_size),
        heads=int(getattr(shape, "num_attention_heads", 1)),
        tokens=config.max_length,
        half=config.precision in ("bf16", "fp16"),
        recomputed=config.save_memory,
    )


def check_memory(cost: MemoryCost, device: torch.device) -> None:
    """Refuse a model whose weights, moments and gradients alone do not fit.

    Raises:
        ConfigError: they do not.
    """
    there = device_memory(device)
    if there is None or cost.kept <= there:
        return
    raise ConfigError(
        f"--model: by the cost model, weights, moments and gradients of {_millions(cost.trained)} "
        f"trained parameters take {in_gigabytes(cost.kept)} before any row, and {device} has "
        f"{in_gigabytes(there)}; train at most {_millions(_fitting(cost, there))} of them, with "
        "--lora or --freeze-layers, or take a smaller --model"
    )


def _fitting(cost: MemoryCost, there: int) -> float:
    """How many parameters can be trained: each costs its copies, and each frozen one itself."""
    all_frozen = 4 * (cost.trained + cost.frozen)
    return max(0.0, (there * _ROOM - all_frozen) / (4 * (cost.copies - 1)))


def _millions(count: float) -> str:
    return f"{count / 1e6:,.1f} M"


@contextmanager
def lowering_told(cost: MemoryCost, device: torch.device) -> Iterator[None]:
    """Add to an error about memory what to lower and by how much, and with what to go on.

    Args:
        cost: what the training needs.
        device: the device that it computes on.

    Raises:
        OutOfMemoryError: memory has run out in the block.
    """
    try:
        with running_out_told():
            yield
    except OutOfMemoryError as error:
        there = device_memory(device)
        has = "" if there is None else f", of {in_gigabytes(there)} on {device}"
        kept = f"weights, moments and gradients take {in_gigabytes(cost.kept)}"
        if error.rows is None:
            raise OutOfMemoryError(f"{error}. By the cost model, {kept}{has}") from error
        sentence, options = _lower(cost, there, error.rows, error.least)
        raise OutOfMemoryError(
            f"{error}. By the cost model, {kept} and {_pass(cost, error.rows)}{has}; {sentence}",
            rows=error.rows,
            least=error.least,
            go_on_with=options,
        ) from error


def _lower(cost: MemoryCost, there: int | None, rows: int, least: int) -> tuple[str, Sequence[str]]:
    """What to lower, as the end of a sentence, and the options that resume the run with it."""
    half = rows // 2
    if half >= least:
        fitting = half if there is None else min(half, cost.rows_within(there * _ROOM))
        fewer = max(fitting, least)
        return f"with --micro-batch-size {fewer}, {_pass(cost, fewer)}", (
            "--micro-batch-size",
            str(fewer),
        )
    if not cost.recomputed:
        return f"with --save-memory, {_pass(cost.recomputing(), rows)}", ("--save-memory",)
    shorter = replace(cost, tokens=max(1, cost.tokens // 2))
    return f"in a new run with --max-length {shorter.tokens}, {_pass(shorter, rows)}", ()


def _pass(cost: MemoryCost, rows: int) -> str:
    of = f"{rows} rows" if rows > 1 else "one row"
    return f"a pass of {of} of {cost.tokens} tokens takes {in_gigabytes(rows * cost.row)}"
