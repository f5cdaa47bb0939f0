"""The runs of a comparison, as they are planned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aang.config import TrainConfig
from aang.runs import Result, read_part

from aang_core import ConfigError


@dataclass(frozen=True)
class Match:
    """The run whose compute or seconds another run gets.

    Attributes:
        what: compute or seconds.
        of: the other run, relative to the folder of the comparison.
        pace: for seconds, the run whose seconds per step convert them to steps.
    """

    what: Literal["compute", "seconds"]
    of: Path
    pace: Path | None = None

    @property
    def runs(self) -> list[Path]:
        """The runs that must finish first."""
        return [self.of, *([self.pace] if self.pace is not None else [])]


@dataclass(frozen=True)
class Job:
    """A run to be trained.

    Attributes:
        folder: the run folder, relative to the folder of the comparison or search.
        config: its options, without what ``match`` adds.
        match: the run whose compute or seconds it gets; None for other methods.
    """

    folder: Path
    config: TrainConfig
    match: Match | None = None


@dataclass(frozen=True)
class Cell(Job):
    """One run of a comparison.

    Attributes:
        task: the task.
        method: the method.
        seed: the seed.
        choice: its place in the grid, from 0; None without a grid.
        setting: the options that the grid sets, as text for people.
    """

    task: str = ""
    method: str = ""
    seed: int = 0
    choice: int | None = None
    setting: str = ""


@dataclass(frozen=True)
class Comparison:
    """A planned comparison.

    Attributes:
        tasks: names of the tasks.
        methods: names of the methods.
        baseline: the method that the others are tested against; None for no tests.
        cells: all runs.
        left_out: folders of runs that count as unfinished, and files of controls that do not count,
            relative to the folder of the comparison.
    """

    tasks: Sequence[str]
    methods: Sequence[str]
    baseline: str | None
    cells: Sequence[Cell]
    left_out: frozenset[Path] = frozenset()

    def leading(self) -> list[Cell]:
        """One run for each task and seed, of the baseline or else of the first method.

        Quick controls use its data and its encoder.
        """
        method = self.baseline or self.methods[0]
        first = {(c.task, c.seed): c for c in reversed(self.cells) if c.method == method}
        return [first[key] for key in sorted(first, key=lambda k: (self.tasks.index(k[0]), k[1]))]

    def finished(self, root: Path) -> list[Cell]:
        """The runs that have finished and count.

        Args:
            root: the folder of the comparison.
        """
        return [
            cell
            for cell in self.cells
            if cell.folder not in self.left_out and (root / cell.folder / "result.json").is_file()
        ]


def matched(job: Job, root: Path) -> TrainConfig:
    """The configuration of a run, with the compute or seconds that its ``match`` asks for.

    For compute, a step gets as many end-task rows as went through the body in a step of the other
    run, including rows of objectives and of dev, and a share of those of pre-training and of a
    final fine-tuning; more if the other run took more steps than this one may. For seconds, the run
    gets as many steps as fit into the seconds of the other run; with ``--stop-after`` it stops
    after them, at the same point of its schedule.

    Args:
        job: the run.
        root: the folder of the comparison.

    Raises:
        ConfigError: one of the runs that it is matched with has not finished or has no steps.
        DataError: the result of one of them is damaged.
    """
    if job.match is None:
        return job.config
    of, *pace = [_took(root, run) for run in job.match.runs]
    if job.match.what == "compute":
        rows = max(1, round(of.all_body_rows / min(of.steps, job.config.last_step)))
        return job.config.model_copy(update={"batch_size": rows})
    fitting = of.all_seconds * pace[0].steps / max(pace[0].train_seconds, 1e-3)
    last = max(1, round(fitting))
    if job.config.stop_after is None:
        return job.config.model_copy(update={"steps": last})
    planned = max(last, round(last * job.config.steps / job.config.stop_after))
    return job.config.model_copy(update={"steps": planned, "stop_after": last})


def _took(root: Path, run: Path) -> Result:
    try:
        result = read_part(Result, root / run)
    except FileNotFoundError as error:
        name = run.relative_to("runs")
        raise ConfigError(f"gets as much as {name} takes, which has not finished") from error
    if not result.steps:
        raise ConfigError(f"{root / run}: trained for no steps, so nothing can get as much")
    return result
