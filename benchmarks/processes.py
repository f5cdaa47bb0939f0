"""How long a step takes with several processes, compared with a cost model.

    python -m benchmarks.processes --size 1 --size 2 --size 3

Every process has one thread; they communicate by gloo. For every number of processes, three things
are measured in turn: the step that they share; the whole step, computed by each process alone at
the same time, which shows how much they slow each other down on one machine; and the sum of a
tensor of the gradient's size. From the last two, the model predicts the first:

    t(P) = t_alone(P) · share(P) + 3 · t_sum(P)

share(P) is the share of the step's floating-point operations that the busiest process computes, as
in ``benchmarks.cost_model``.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor, distributed

from aang_core.gradients import EngineSettings, FreshDevHead, GradientEngine, Segment
from aang_core.gradients.engine import choose_engine
from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.task import Batch
from benchmarks.cost_model import SUMS, cost_of, share
from benchmarks.step_cost import SIZES
from benchmarks.steps.measure import clear_gradients
from benchmarks.steps.setting import Setting, StepInputs, make_step

N = 8
"""Number of objectives of a step."""


@dataclass(frozen=True)
class Row:
    """Seconds measured with a number of processes, and the model's prediction."""

    processes: int
    together: float
    alone: float
    sum: float
    share: float

    @property
    def model(self) -> float:
        """The model's prediction of the step's time."""
        return self.alone * self.share + (SUMS * self.sum if self.processes > 1 else 0.0)


@click.command()
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1), default=(1, 2, 3))
@click.option("--repeats", default=7, show_default=True, help="steps; the median counts")
@click.option("--out", type=click.Path(path_type=Path), help="file for the numbers, in JSON")
def main(sizes: tuple[int, ...], repeats: int, out: Path | None) -> None:
    """Measure and print the table."""
    rows = [_measured(size, repeats) for size in sizes]
    if out:
        out.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    for line in table(rows):
        click.echo(line)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    one = next((row.together for row in rows if row.processes == 1), None)
    yield "| processes | step | of one | share | alone, at once | sum of a gradient | model |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        of_one = "–" if one is None else f"{row.together / one:.2f}"
        yield (
            f"| {row.processes} | {row.together:.2f} s | {of_one} "
            f"| {row.share:.2f} | {row.alone:.2f} s | {row.sum:.3f} s | {row.model:.2f} s |"
        )


def _measured(size: int, repeats: int) -> Row:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    command += ["-m", "benchmarks.processes", "worker", str(repeats)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, check=True
    )
    numbers: dict[str, Any] = json.loads(done.stdout)
    return Row(**numbers)


def worker(repeats: int) -> None:
    """Run one of the processes; the first prints the measurements."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    processes = Processes(distributed.get_rank(), distributed.get_world_size())
    setting = replace(SIZES["6x384"], n=N)
    whole = _Step(setting, ALONE)
    shared = _Step(setting, processes)
    gradient = torch.cat([p.detach().flatten() for p in whole.inputs.model.body.parameters()])
    alone, together, summed = [], [], []
    # In turn, so that a busy moment affects all alike; the first round is a warm-up.
    for _ in range(repeats + 1):
        alone.append(_slowest(processes, whole.take))
        together.append(_slowest(processes, shared.take))
        summed.append(_slowest(processes, lambda: processes.sum([gradient])))
    if processes.first:
        numbers = {
            "processes": processes.size,
            "together": statistics.median(together[1:]),
            "alone": statistics.median(alone[1:]),
            "sum": statistics.median(summed[1:]),
            "share": share(cost_of(setting), N, processes.size),
        }
        print(json.dumps(numbers))
    distributed.destroy_process_group()


class _Step:
    """The step of a setting, computed by one process or shared by several."""

    def __init__(self, setting: Setting, processes: Processes) -> None:
        self.inputs: StepInputs = make_step(setting)
        head = FreshDevHead(torch.Generator().manual_seed(0))
        self._engine: GradientEngine = choose_engine(
            EngineSettings(), self.inputs.model.body, head, processes=processes
        )
        end = self.inputs.end
        self._end = replace(end, batches=_cut(end.batches[0], processes.size))
        self._dev = _cut(self.inputs.dev, processes.size)

    def take(self) -> object:
        clear_gradients(self.inputs)
        auxiliaries: list[Segment] = self.inputs.auxiliaries
        return self._engine.step(self._end, auxiliaries, self._dev)


def _cut(batch: Batch, parts: int) -> list[Batch]:
    def cut(tensor: Tensor, part: int) -> Tensor:
        return tensor.tensor_split(parts)[part]

    return [
        Batch(
            {name: cut(value, i) for name, value in batch.inputs.items()},
            {name: cut(value, i) for name, value in batch.targets.items()},
            len(torch.arange(batch.rows).tensor_split(parts)[i]),
        )
        for i in range(parts)
    ]


def _slowest(processes: Processes, act: Callable[[], object]) -> float:
    """Seconds from the common start until the last process has finished."""
    processes.wait()
    began = time.perf_counter()
    act()
    return processes.largest(round(1e6 * (time.perf_counter() - began))) / 1e6


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(int(sys.argv[2]))
    else:
        main()
