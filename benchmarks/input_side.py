"""How long a step waits for its rows: the CPU time in which they are drawn, corrupted and padded.

    python -m benchmarks.input_side
    python -m benchmarks.input_side TRAIN.jsonl DEV.jsonl

A step asks for its numbers once, at its end, so an accelerator has nothing to do while the rows of
the next step are prepared. Its waiting is the time of preparing as a share of that time and a step
of 20 ms. The encoder is a tiny one: it has no influence on the time of preparing, which is the
process's own CPU time and so is little disturbed by others.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import torch

from aang_core.assembly.assembly import assemble
from aang_core.assembly.sources import prepare_sources
from aang_core.config import resolve_config
from aang_core.plugins import load_plugins
from aang_core.runs.training import build_trainer
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


@contextmanager
def timed_draws() -> Iterator[list[float]]:
    """Within it, the CPU milliseconds of every preparation of a step's rows are listed."""
    times: list[float] = []
    draw = StepPlan.draw

    def timed(self: StepPlan, draws: Draws, parts: int) -> StepRows:
        start = time.process_time()
        rows = draw(self, draws, parts)
        times.append(1000 * (time.process_time() - start))
        return rows

    StepPlan.draw = timed  # type: ignore[method-assign]
    try:
        yield times
    finally:
        StepPlan.draw = draw  # type: ignore[method-assign]


def preparing(trainer: Trainer, steps: int) -> list[float]:
    """CPU milliseconds in which the rows of each of ``steps`` steps are prepared."""
    with timed_draws() as times:
        for _ in range(WARM_UP + steps):
            trainer.bench.begin_round()
            trainer.weighter.round(trainer.bench)
    return times[WARM_UP:]


@click.command()
@click.argument("train", required=False, type=click.Path(path_type=Path, exists=True))
@click.argument("dev", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("--steps", default=30, help="Steps to measure of every setting.")
@click.option("--setting", "names", multiple=True, type=click.Choice([*SETTINGS]))
def main(train: Path | None, dev: Path | None, steps: int, names: tuple[str, ...]) -> None:
    """Print what every setting's step waits for its rows; without files, on the demo task."""
    torch.set_num_threads(1)
    files = {name: path for name, path in (("train", train), ("dev", dev)) if path is not None}
    print("| setting | preparing, ms | longest, ms | waiting at 20 ms a step |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        encoder = Path(folder) / "encoder"
        write_encoder(encoder, EncoderSize(vocabulary=6000, positions=128))
        for name in names or SETTINGS:
            times = preparing(trainer_of(files, encoder, SETTINGS[name]), steps)
            usual = statistics.median(times)
            waiting = usual / (usual + STEP)
            print(f"| {name} | {usual:.1f} | {max(times):.1f} | {waiting:.0%} |", flush=True)


if __name__ == "__main__":
    main()
