"""The cost of gradient signals on one GPU.

    python -m benchmarks.step_cost_gpu
    python -m benchmarks.step_cost_gpu --size minilm --n 3 --n 24 --out cells.json

Random weights and rows of 128 tokens, n of 3, 6 and 24 objectives, in bfloat16 and float32; medians
of CUDA events. Nothing is downloaded. ``roberta-base`` and ``minilm`` have the rows of the paper,
128 of the end task, 128 of dev and 256 auxiliary ones; ``minilm-32`` has those of ``aang train``,
32 of each. Every cell is printed and saved to ``--out`` as soon as it is measured. ``--size tiny
--device cpu`` runs the same script on a small model, timed by the clock.
"""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch

from aang_core.gradients.passes import Precision
from benchmarks.steps.measure import WAYS, clear_gradients
from benchmarks.steps.setting import Setting, StepInputs, make_step

SIZES = {
    "minilm-32": Setting(6, 384, 0, 32, 32, 32, 128),
    "minilm": Setting(6, 384, 0, 128, 128, 256, 128),
    "roberta-base": Setting(12, 768, 0, 128, 128, 256, 128, 50265),
    "tiny": Setting(2, 64, 0, 8, 8, 24, 32, 2000),
}
ON_GPU = ("minilm-32", "minilm", "roberta-base")
COMPARED = ("plain", "floor", "static", "stream", "packed")
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp32")


@click.command(help=__doc__, context_settings={"show_default": True})
@click.option("--device", default="cuda")
@click.option("--size", "sizes", multiple=True, type=click.Choice(list(SIZES)), default=ON_GPU)
@click.option("--n", "numbers", multiple=True, type=int, default=(3, 6, 24))
@click.option("--repeats", default=7)
@click.option("--out", type=click.Path(path_type=Path), help="JSON file of the cells")
def main(
    device: str, sizes: tuple[str, ...], numbers: tuple[int, ...], repeats: int, out: Path | None
) -> None:
    """Time the ways to compute a step on one device."""
    place = torch.device(device)
    chip = torch.cuda.get_device_name(place) if place.type == "cuda" else "CPU"
    click.echo(f"{chip}, torch {torch.__version__}\n")
    click.echo("| | " + " | ".join(COMPARED) + " |\n|---|" + "---|" * len(COMPARED))
    cells = []
    for size in sizes:
        for precision in PRECISIONS:
            for n in numbers:
                setting = dataclasses.replace(SIZES[size], n=n)
                cell = {"size": size, **_cell(setting, precision, place, repeats)}
                cells.append(cell)
                ways = " | ".join(_in_words(cell[way]) for way in COMPARED)
                click.echo(f"| {size}, {precision}, n = {n} | {ways} |")
                if out is not None:
                    content = {"chip": chip, "torch": torch.__version__, "cells": cells}
                    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _in_words(way: dict[str, float] | None) -> str:
    return "out of memory" if way is None else f"{way['ms']:.1f} ms, {way['gb']:.2f} GB"


def _cell(
    setting: Setting, precision: Precision, device: torch.device, repeats: int
) -> dict[str, Any]:
    step = make_step(setting, device)
    cell: dict[str, Any] = {"precision": precision, "n": setting.n}
    for name in COMPARED:
        try:
            cell[name] = _timed(step, WAYS[name](step, precision), device, repeats)
        except torch.OutOfMemoryError:
            cell[name] = None  # a result, too; the other ways may fit
    return cell


def _timed(
    step: StepInputs, way: Callable[[], object], device: torch.device, repeats: int
) -> dict[str, float]:
    for _ in range(2):
        _run(step, way)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    milliseconds = [_milliseconds(step, way, device) for _ in range(repeats)]
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return {"ms": statistics.median(milliseconds), "gb": peak / 1e9}


def _run(step: StepInputs, way: Callable[[], object]) -> None:
    clear_gradients(step)
    way()


def _milliseconds(step: StepInputs, way: Callable[[], object], device: torch.device) -> float:
    clear_gradients(step)
    if device.type != "cuda":
        started = time.perf_counter()
        way()
        return 1000 * (time.perf_counter() - started)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    way()
    after.record()
    torch.cuda.synchronize(device)
    return float(before.elapsed_time(after))


if __name__ == "__main__":
    main()
