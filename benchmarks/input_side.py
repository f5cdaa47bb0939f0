"""How long an accelerator waits for the rows of a step, which the CPU draws, corrupts and pads.

    python -m benchmarks.input_side
    python -m benchmarks.input_side TRAIN.jsonl DEV.jsonl

A step asks for its numbers once, at its end. Before it waits for them, it prepares the rows of the
next step, as far as the weighter foresees them. What turns out wrong is prepared again when the
numbers are there, and then the accelerator waits: for that, and for what was prepared early if it
took longer than the step. The step is taken to last 20 ms. The encoder is a tiny one: it has no
influence on the time of preparing, which is the process's own CPU time and so is little disturbed
by others.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import torch
from aang.assembly.assembly import assemble
from aang.assembly.sources import prepare_sources
from aang.config import resolve_config
from aang.runs.training import build_trainer

from aang_core.plugins import load_plugins
from aang_core.training.draws import Draws
from aang_core.training.step_rows import StepPlan, StepRows
from aang_core.training.trainer import Trainer
from benchmarks.small_task import EncoderSize, write_encoder

STEP = 20.0
"""Milliseconds of a step on an accelerator."""
WARM_UP = 3
"""Steps before measuring, in which the dev head's memory fills."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "single-task": {"weighter": "single-task"},
    "td, factored": {"space": "td", "weighter": "factored"},
    "td, factored, measuring every fourth step": {
        "space": "td",
        "weighter": "factored",
        "meta_every": 4,
    },
    "td+c, factored": {"space": "td+c", "weighter": "factored"},
    "td, static, all 24": {"space": "td", "weighter": "static"},
}


def trainer_of(files: Mapping[str, Path], encoder: Path, setting: Mapping[str, Any]) -> Trainer:
    """The trainer of a setting, with the default number of rows of a step."""
    registry = load_plugins().registry
    given = {"model": str(encoder), "max_length": 128, "precision": "fp32", "steps": 10_000}
    config = resolve_config({}, {**files, **given, **setting})
    torch.manual_seed(config.seed)
    assembly = assemble(config, prepare_sources(config, registry))
    return build_trainer(config, assembly, torch.device("cpu"))


@dataclass
class Times:
    """CPU milliseconds in which rows were prepared, by step.

    Attributes:
        early: of the next step's rows, while an accelerator would compute.
        late: of the step's own rows, while it would wait.
    """

    early: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)

    def waiting(self) -> list[float]:
        """Milliseconds that an accelerator waits before each step but the first."""
        return [
            late + max(0.0, early - STEP)
            for early, late in zip(self.early, self.late[1:], strict=False)
        ]


@contextmanager
def timed_draws() -> Iterator[Times]:
    """Within it, every preparation of a step's rows is timed."""
    times = Times()
    draw = StepPlan.draw

    def timed(self: StepPlan, draws: Draws, parts: int) -> StepRows:
        start = time.process_time()
        rows = draw(self, draws, parts)
        spent = 1000 * (time.process_time() - start)
        (times.early if draws.prepared.is_ahead else times.late).append(spent)
        return rows

    StepPlan.draw = timed  # type: ignore[method-assign]
    try:
        yield times
    finally:
        StepPlan.draw = draw  # type: ignore[method-assign]


def preparing(trainer: Trainer, steps: int, *, ahead: bool) -> list[float]:
    """Milliseconds that an accelerator would wait before each of ``steps`` steps."""
    trainer.bench.prepared.enabled = ahead
    with timed_draws() as times:
        for _ in range(WARM_UP + steps):
            trainer.bench.begin_round()
            trainer.weighter.round(trainer.bench)
    return (times.waiting() if ahead else times.late[1:])[WARM_UP - 1 :]


@click.command()
@click.argument("train", required=False, type=click.Path(path_type=Path, exists=True))
@click.argument("dev", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("--steps", default=30, help="Steps to measure of every setting.")
@click.option("--setting", "names", multiple=True, type=click.Choice([*SETTINGS]))
def main(train: Path | None, dev: Path | None, steps: int, names: tuple[str, ...]) -> None:
    """Print what every setting's step waits for its rows; without files, on the demo task."""
    torch.set_num_threads(1)
    files = {name: path for name, path in (("train", train), ("dev", dev)) if path is not None}
    print("| setting | waiting, ms | the same, prepared early | longest | share of 20 ms steps |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        encoder = Path(folder) / "encoder"
        write_encoder(encoder, EncoderSize(vocabulary=6000, positions=128))
        for name in names or SETTINGS:
            late, early = (
                preparing(trainer_of(files, encoder, SETTINGS[name]), steps, ahead=ahead)
                for ahead in (False, True)
            )
            mean = statistics.mean(early)
            print(
                f"| {name} | {statistics.mean(late):.1f} | {mean:.1f} | {max(early):.1f} "
                f"| {mean / (mean + STEP):.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
