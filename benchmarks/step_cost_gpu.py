"""The cost of gradient signals on one GPU, at the size of the papers.

    python -m benchmarks.step_cost_gpu

RoBERTa-base's shape, random weights, 128 end-task, 128 dev and 256 auxiliary rows of 128 tokens,
n of 3, 6 and 24 objectives, in bfloat16 and float32; medians of CUDA events. Nothing is downloaded.
``--tiny --device cpu`` runs the same script on a small model, timed by the clock.
"""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import click
import torch

from aang_core.gradients.passes import Precision
from benchmarks.steps.measure import WAYS, clear_gradients
from benchmarks.steps.setting import Setting, StepInputs, make_step

ROBERTA_BASE = Setting(12, 768, 0, 128, 128, 256, 128, 50265)
TINY = Setting(2, 64, 0, 8, 8, 24, 32, 2000)
COMPARED = ("plain", "floor", "static", "stream", "packed")


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--tiny", is_flag=True, help="a small model, to try the script")
@click.option("--n", "numbers", multiple=True, type=int, default=(3, 6, 24), show_default=True)
@click.option("--repeats", default=7, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(device: str, tiny: bool, numbers: tuple[int, ...], repeats: int, as_json: bool) -> None:
    """Time the ways to compute a step on one device."""
    place = torch.device(device)
    chip = torch.cuda.get_device_name(place) if place.type == "cuda" else "CPU"
    cells = []
    precisions: tuple[Precision, ...] = ("bf16", "fp32")
    for precision in precisions:
        for n in numbers:
            setting = dataclasses.replace(TINY if tiny else ROBERTA_BASE, n=n)
            cells.append(_cell(setting, precision, place, repeats))
    if as_json:
        click.echo(json.dumps({"chip": chip, "torch": torch.__version__, "cells": cells}, indent=1))
        return
    click.echo(f"{chip}, torch {torch.__version__}\n")
    click.echo("| | " + " | ".join(COMPARED) + " |\n|---|" + "---|" * len(COMPARED))
    for cell in cells:
        ways = [f"{cell[w]['ms']:.1f} ms, {cell[w]['gb']:.2f} GB" for w in COMPARED]
        click.echo(f"| {cell['precision']}, n = {cell['n']} | " + " | ".join(ways) + " |")


def _cell(
    setting: Setting, precision: Precision, device: torch.device, repeats: int
) -> dict[str, Any]:
    step = make_step(setting, device)
    cell: dict[str, Any] = {"precision": precision, "n": setting.n}
    for name in COMPARED:
        way = WAYS[name](step, precision)
        for _ in range(2):
            _run(step, way)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        milliseconds = [_milliseconds(step, way, device) for _ in range(repeats)]
        peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
        cell[name] = {"ms": statistics.median(milliseconds), "gb": peak / 1e9}
    return cell


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
