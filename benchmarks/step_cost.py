"""The cost of gradient signals: arithmetic, CPU time, elapsed time and memory of one step.

    python -m benchmarks.step_cost flops
    python -m benchmarks.step_cost times --size 6x384 --n 3 --n 24
    python -m benchmarks.step_cost times --paper
    python -m benchmarks.step_cost times --size 6x384 --way plain --way static --precision bf16
    python -m benchmarks.step_cost memory --size 6x384
    python -m benchmarks.step_cost memory --size 6x384 --n 3 --lora 8
    python -m benchmarks.step_cost flops --size 2x64 --out benchmarks/baseline.json

Every cell is saved to ``--out`` as soon as it is measured, so an interrupted run continues where it
stopped. All times in a file have the same ``--repeats`` and ``--threads``. Ways to compute a step:
plain (multitask training), floor (the same with dev rows), static, stream, packed, compiled (stream
under torch.compile), and for comparison published and torchjd (``pip install -e .[benchmark]``).
"""

import dataclasses
import importlib.util
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import torch

from aang_core.gradients.passes import Precision
from benchmarks.steps.measure import WAYS, count_flops, peak_memory, time_interleaved
from benchmarks.steps.setting import Setting
from benchmarks.steps.table import print_tables

SIZES = {
    "2x64": Setting(2, 64, 0, 8, 8, 24, 32, 2000),
    "4x256": Setting(4, 256, 0, 32, 32, 64, 64),
    "6x384": Setting(6, 384, 0, 32, 32, 64, 64),
    "6x384-few": Setting(6, 384, 0, 16, 16, 16, 64),
    "12x768": Setting(12, 768, 0, 8, 8, 24, 64, 50265),
}
"""Without n. 2x64 is what the tests count; 6x384 is MiniLM's shape, also with half of the default
rows per step; 12x768 is RoBERTa-base's."""

PAPER = Setting(6, 384, 6, 32, 32, 64, 64, 50265)
"""AANG's own proportions: a quarter of its 128 end-task, 128 dev and 256 auxiliary rows."""

REPEATS, THREADS = 7, 1
"""Assumed for times that do not record their own."""

OURS = ("plain", "floor", "static", "stream", "packed")
OF_THE_PAPER = (*OURS, "published", "torchjd")


@click.command()
@click.argument("what", type=click.Choice(["flops", "times", "memory"]))
@click.option("--size", "sizes", multiple=True, type=click.Choice(list(SIZES)))
@click.option("--n", "numbers", multiple=True, type=int, help="objectives; default 3, 6, 12, 24")
@click.option("--paper", is_flag=True, help="AANG's setting, with published and torchjd")
@click.option("--lora", type=int, help="rank of adapters that are trained instead of the body")
@click.option("--freeze-layers", "frozen", type=int, help="first layers that are not trained")
@click.option("--way", "ways", multiple=True, type=click.Choice(list(WAYS)))
@click.option(
    "--precision", default="fp32", type=click.Choice(["fp32", "bf16"]), help="of what is timed"
)
@click.option("--repeats", default=REPEATS, show_default=True, help="steps of each way")
@click.option("--threads", default=THREADS, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="file that keeps the cells")
@click.option("--json", "as_json", is_flag=True, help="print JSON instead of a table")
def main(
    what: str,
    sizes: tuple[str, ...],
    numbers: tuple[int, ...],
    paper: bool,
    lora: int | None,
    frozen: int | None,
    ways: tuple[str, ...],
    precision: Precision,
    repeats: int,
    threads: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure one kind of cost, WHAT, of a step."""
    if what != "times" and precision != "fp32":
        raise click.UsageError(f"{what} are counted in fp32; leave --precision out")
    cells: dict[str, Any] = json.loads(out.read_text()) if out and out.is_file() else {}
    if what == "times":
        _check_times(cells, repeats, threads, out)
    torch.set_num_threads(threads)
    for full in settings_of(sizes, numbers, paper):
        setting = dataclasses.replace(full, lora=lora, frozen=frozen)
        chosen = [w for w in ways or (OF_THE_PAPER if paper else OURS) if _available(w)]
        name = setting.name if precision == "fp32" else f"{setting.name} {precision}"
        cell = cells.setdefault(name, {})
        missing = [way for way in chosen if what not in cell.get(way, {})]
        if missing:
            measured = _measure(what, setting, missing, precision, repeats, threads)
            for way, value in measured.items():
                cell.setdefault(way, {})[what] = value
            if out:
                out.write_text(json.dumps(cells, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(cells, indent=1))
    else:
        print_tables(cells, what)


def _check_times(cells: Mapping[str, Any], repeats: int, threads: int, out: Path | None) -> None:
    """Check that all known times have the same repeats and threads; one table shows them all."""
    for cell in cells.values():
        for times in (values["times"] for values in cell.values() if "times" in values):
            known = times.get("repeats", REPEATS), times.get("threads", THREADS)
            if known != (repeats, threads):
                raise click.ClickException(
                    f"{out} has times of --repeats {known[0]} --threads {known[1]}; give the same, "
                    f"or another --out"
                )


def settings_of(sizes: tuple[str, ...], numbers: tuple[int, ...], paper: bool) -> Iterator[Setting]:
    """The cells that the options select; all of them without options."""
    if paper:
        yield PAPER
        return
    for size in sizes or SIZES:
        for n in numbers or (3, 6, 12, 24):
            yield dataclasses.replace(SIZES[size], n=n)


def _available(way: str) -> bool:
    return way != "torchjd" or importlib.util.find_spec("torchjd") is not None


def _measure(
    what: str,
    setting: Setting,
    ways: list[str],
    precision: Precision,
    repeats: int,
    threads: int,
) -> dict[str, Any]:
    if what == "flops":
        return {way: count_flops(setting, way) for way in ways}
    if what == "memory":
        return {way: peak_memory(setting, way) for way in ways}
    measured = time_interleaved(setting, ways, repeats, precision)
    return {
        way: {
            "cpu_seconds": statistics.median(t.cpu for t in times),
            "wall_seconds": statistics.median(t.wall for t in times),
            "repeats": repeats,
            "threads": threads,
        }
        for way, times in measured.items()
    }


if __name__ == "__main__":
    main()
