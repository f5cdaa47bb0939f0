"""What the runs of a comparison are doing: a bar for each on a terminal, else a line for each."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

from aang.runs import DevScores, read_lines, shown_score
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from aang_core import DataError
from aang_core.cli import echo, printable
from aang_plugin_compare.cells import Job

EVERY = 1.0
"""Seconds between two looks into the folders of the runs."""


class Watching:
    """Shows which runs train, and how far they are.

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
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._root = root
        self._runs = runs
        self._quiet = quiet
        self._lock = Lock()
        self._begun = 0
        self._shown: dict[Path, TaskID] = {}

    def began(self, job: Job) -> None:
        """A run has begun to train, or goes on."""
        name = printable(str(job.folder.relative_to("runs")))
        with self._lock:
            self._begun += 1
            self._shown[job.folder] = self.bars.add_task(name, total=job.config.steps, state="")
            if self.bars.disable and not self._quiet:
                self.say(f"{name}: training (run {self._begun} of {self._runs})")

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
        with self._lock:
            if (bar := self._shown.pop(job.folder, None)) is not None:
                self.bars.remove_task(bar)

    def look(self) -> None:
        """Read how far each run is."""
        with self._lock:
            for folder, bar in self._shown.items():
                # One that fails has not begun to write, or is writing right now.
                with suppress(FileNotFoundError, DataError, LookupError):
                    lines = read_lines(DevScores, self._root / folder)
                    metric = next(iter(lines[-1].dev))
                    scores = [line.dev[metric] for line in lines]
                    last, best = (shown_score(s, metric) for s in (scores[-1], max(scores)))
                    state = f"dev {metric} {last}, best {best}"
                    self.bars.update(bar, completed=lines[-1].step, state=state)


@contextmanager
def watching(root: Path, runs: int, *, quiet: bool) -> Iterator[Watching]:
    """Show the runs while the block lasts.

    Args:
        root: the folder of the comparison.
        runs: the number of runs.
        quiet: whether only failures are shown.
    """
    shown, over = Watching(root, runs, quiet), Event()

    def look_again() -> None:
        while not over.wait(EVERY):
            shown.look()

    thread = Thread(target=look_again, daemon=True)
    with shown.bars:
        if not shown.bars.disable:
            thread.start()
        try:
            yield shown
        finally:
            over.set()
            if thread.is_alive():
                thread.join()
