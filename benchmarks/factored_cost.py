"""The cost of a step of ``factored`` relative to plain fine-tuning, for several settings.

    python -m benchmarks.factored_cost TRAIN.jsonl MODEL

Floating-point operations are counted over whole steps of real rows. CPU seconds are the median of
several rounds in which all settings take turns. Costs are averaged over four steps, because some
settings measure every fourth step.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import torch
from aang.assembly.assembly import assemble
from aang.assembly.sources import prepare_sources
from aang.config import resolve_config
from aang.runs.training import build_trainer
from torch.utils.flop_counter import FlopCounterMode

from aang_core.plugins import load_plugins
from aang_core.training.trainer import Trainer

PLAIN = "single-task"


def settings(rows: int) -> dict[str, dict[str, Any]]:
    """The options of every setting, by its description, for ``rows`` of each kind in a step."""
    quarter = {"meta_every": 4, "dev_batch_size": rows // 2, "aux_batch_size": rows // 4}
    return {
        PLAIN: {"weighter": "single-task"},
        "contrast": {"recipe": "contrast"},
        "factored on td": {"space": "td"},
        "factored on td, --meta-every 4": {"space": "td", "meta_every": 4},
        "factored on td+c": {"space": "td+c"},
        "factored on td+c, --meta-every 4": {"space": "td+c", "meta_every": 4},
        f"the same, n = 1, {rows // 2} dev rows, {rows // 4} of objectives": {
            **{"space": "td+c", "set": {"factored": {"n": 1}}, **quarter}
        },
    }


CYCLE = 4
"""Steps that are counted together."""
WARM_UP = 4
"""Steps before measuring, in which the dev head's memory fills."""


def trainer_of(train: Path, model: Path, rows: int, setting: Mapping[str, Any]) -> Trainer:
    """The trainer of a setting, after its first steps."""
    registry = load_plugins().registry
    config = resolve_config(
        {
            **{"train": train, "model": str(model), "max_length": 64, "train_rows": 500},
            **{"batch_size": rows, "dev_batch_size": rows, "aux_batch_size": rows},
            **{"precision": "fp32", "steps": 10_000, **setting},
        },
        {},
        registry,
    )
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, registry))
    trainer = build_trainer(assembly, torch.device("cpu"))
    take_steps(trainer, WARM_UP)
    return trainer


def take_steps(trainer: Trainer, steps: int) -> None:
    """Train for ``steps`` more steps."""
    end = trainer.bench.steps + steps
    while trainer.bench.steps < end:
        trainer.weighter.round(trainer.bench)


def relative(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each setting relative to that of plain fine-tuning."""
    plain = statistics.median(values[PLAIN])
    return {name: statistics.median(of) / plain for name, of in values.items()}


@click.command()
@click.argument("train", type=click.Path(path_type=Path, exists=True))
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@click.option("--rows", default=32, show_default=True, help="rows of each kind in a step")
@click.option("--rounds", default=5, show_default=True, help="of four steps each")
def main(train: Path, model: Path, rows: int, rounds: int) -> None:
    """Print the cost of each setting's step relative to plain fine-tuning's."""
    torch.set_num_threads(1)
    trainers = {n: trainer_of(train, model, rows, of) for n, of in settings(rows).items()}
    flops: dict[str, list[float]] = {name: [] for name in trainers}
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, trainer in trainers.items():
            began = time.process_time()
            take_steps(trainer, CYCLE)
            seconds[name].append(time.process_time() - began)
        for name, trainer in trainers.items():
            with FlopCounterMode(display=False) as counter:
                take_steps(trainer, CYCLE)
            flops[name].append(counter.get_total_flops())
    operations, times = relative(flops), relative(seconds)
    click.echo(f"{'setting':<48} FLOPs  CPU seconds")
    for name in trainers:
        click.echo(f"{name:<48} {operations[name]:5.2f}  {times[name]:11.2f}")


if __name__ == "__main__":
    main()
