"""What the runs of a comparison are doing: a bar for each on a terminal, else a line for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

from aang.runs import DevScores, read_lines, shown_score
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from aang_core import DataError
from aang_core.cli import echo, printable
from aang_plugin_compare.cells import Cell

EVERY = 1.0
"""Seconds between two looks into the folders of the runs."""


class Watching:
    """Shows which runs train, and how far they are.

    Args:
        root: the folder of the comparison.
        runs: the number of runs.
        progress: the bars; None to print a line when a run begins.
        quiet: whether that line is left out, too.
    """

    def __init__(
        self, root: Path, runs: int, progress: Progress | None, *, quiet: bool = False
    ) -> None:
        self._root = root
        self._runs = runs
        self._progress = progress
        self._quiet = quiet
        self._lock = Lock()
        self._begun = 0
        self._bars: dict[Path, tuple[Cell, TaskID]] = {}

    def began(self, cell: Cell) -> None:
        """A run has begun to train, or goes on."""
        with self._lock:
            self._begun += 1
            name = cell.folder.relative_to("runs")
            if self._progress is None:
                if not self._quiet:
                    self.say(f"{name}: training (run {self._begun} of {self._runs})")
                return
            bar = self._progress.add_task(printable(str(name)), total=cell.config.steps, state="")
            self._bars[cell.folder] = cell, bar

    def say(self, line: str) -> None:
        """Print a line to standard error, above the bars."""
        if self._progress is None:
            echo(line, err=True)
        else:
            console = self._progress.console
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def ended(self, cell: Cell) -> None:
        """A run has ended."""
        with self._lock:
            found = self._bars.pop(cell.folder, None)
            if found is not None and self._progress is not None:
                self._progress.remove_task(found[1])

    def look(self) -> None:
        """Read how far each run is."""
        with self._lock:
            watched = list(self._bars.values())
        for cell, bar in watched:
            try:
                lines = read_lines(DevScores, self._root / cell.folder)
            except (FileNotFoundError, DataError):
                continue  # it has not begun to write, or is writing right now
            if not lines:
                continue
            scores = [next(iter(line.dev.values())) for line in lines]
            metric = next(iter(lines[-1].dev))
            last, best = (shown_score(score, metric) for score in (scores[-1], max(scores)))
            state = f"dev {metric} {last}, best {best}"
            with self._lock:
                if self._progress is not None and cell.folder in self._bars:
                    self._progress.update(bar, completed=lines[-1].step, state=state)


@contextmanager
def watching(root: Path, runs: int, *, quiet: bool) -> Iterator[Watching]:
    """Show the runs while the block lasts; nothing if ``quiet``.

    Args:
        root: the folder of the comparison.
        runs: the number of runs.
        quiet: whether nothing is shown.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Watching(root, runs, None, quiet=quiet)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=15),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}", markup=False),
    )
    over = Event()
    with Progress(*columns, console=console, transient=True) as progress:
        shown = Watching(root, runs, progress)

        def look_again() -> None:
            while not over.wait(EVERY):
                shown.look()

        thread = Thread(target=look_again, daemon=True)
        thread.start()
        try:
            yield shown
        finally:
            over.set()
            thread.join()
