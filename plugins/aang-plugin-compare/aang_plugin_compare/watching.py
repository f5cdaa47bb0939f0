"""What the runs of a comparison are doing: a bar for each on a terminal, else a line for each."""

import itertools
from contextlib import suppress
from pathlib import Path

from aang.runs import DevScores, read_lines, shown_score
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from aang_core import DataError
from aang_core.cli import echo, printable
from aang_plugin_compare.cells import Job


class _Scores(ProgressColumn):
    """The last dev score of a run and its best, read from its folder whenever bars are drawn."""

    def render(self, task: Task) -> Text:
        # A run without readable scores has not begun to write, or is writing right now.
        with suppress(FileNotFoundError, DataError, LookupError):
            lines = read_lines(DevScores, task.fields["folder"])
            metric = next(iter(lines[-1].dev))
            scores = [line.dev[metric] for line in lines]
            last, best = (shown_score(score, metric) for score in (scores[-1], max(scores)))
            task.completed = lines[-1].step
            task.fields["state"] = f"dev {metric} {last}, best {best}"
        return Text(task.fields["state"])


class Watching:
    """Shows which runs train, and how far they are, while its ``bars`` are entered.

    Args:
        root: the folder of the comparison.
        runs: the number of runs.
        quiet: whether only failures are shown.
    """

    def __init__(self, root: Path, runs: int, quiet: bool) -> None:
        console = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=15),
            MofNCompleteColumn(),
            _Scores(),
            console=console,
            refresh_per_second=1,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._root = root
        self._runs = runs
        self._quiet = quiet
        self._begun = itertools.count(1)
        self._shown: dict[Path, TaskID] = {}

    def began(self, job: Job) -> None:
        """A run has begun to train, or goes on."""
        name = printable(str(job.folder.relative_to("runs")))
        self._shown[job.folder] = self.bars.add_task(
            name, total=job.config.last_step, folder=self._root / job.folder, state=""
        )
        if self.bars.disable and not self._quiet:
            self.say(f"{name}: training (run {next(self._begun)} of {self._runs})")

    def say(self, line: str) -> None:
        """Print a line to standard error, above the bars."""
        if self.bars.disable:
            echo(line, err=True)
        else:
            self.bars.console.print(
                printable(line), markup=False, highlight=False, emoji=False, soft_wrap=True
            )

    def ended(self, job: Job) -> None:
        """A run has ended."""
        if (bar := self._shown.pop(job.folder, None)) is not None:
            self.bars.remove_task(bar)
