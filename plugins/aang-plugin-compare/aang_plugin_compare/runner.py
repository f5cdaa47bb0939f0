"""Training the runs of a comparison, each in a separate process; finished runs are kept."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock, Timer
from typing import Literal

import yaml

from aang_core import AangError, ConfigError
from aang_core.config import TrainConfig, recorded_config
from aang_core.runs import refuse_links
from aang_core.storage import RunFolder, locked, writing
from aang_plugin_compare.launcher import Launcher, Order
from aang_plugin_compare.matching import matched
from aang_plugin_compare.spec import Cell

State = Literal["finished", "interrupted", "new"]


@dataclass(frozen=True)
class Ended:
    """How one run ended.

    Attributes:
        cell: the run.
        state: its state before.
        error: the last error that it printed; None if it finished.
    """

    cell: Cell
    state: State
    error: str | None


def state_of(cell: Cell, root: Path) -> State:
    """Whether the run is finished, interrupted or new.

    Raises:
        ConfigError: the folder holds a run with different options.
    """
    folder = root / cell.folder
    if not (folder / "config.yaml").is_file():
        return "new"
    there = recorded_config(folder / "config.yaml")
    if cell.config.precision == "auto":
        # A run records the precision that was chosen on its machine.
        there = there.model_copy(update={"precision": "auto"})
    # A run also records what follows from its data.
    there = there.model_copy(
        update={name: getattr(cell.config, name) for name in _left_to_the_data(cell.config)}
    )
    if there.model_dump(exclude={"out"}) != cell.config.model_dump(exclude={"out"}):
        differing = [
            name
            for name in type(there).model_fields
            if name != "out" and getattr(there, name) != getattr(cell.config, name)
        ]
        raise ConfigError(
            f"{folder}: holds a run with another {' and '.join(differing)}. Remove it, or give the "
            "comparison another folder with --out"
        )
    return "finished" if (folder / "result.json").is_file() else "interrupted"


class Runner:
    """Runs cells, several at the same time.

    Args:
        root: the folder of the comparison.
        launcher: trains the runs.
        ended: called after each run, one call at a time, from the thread that ran it.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    def __init__(
        self,
        root: Path,
        launcher: Launcher,
        ended: Callable[[Ended], None],
        *,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._launcher = launcher
        self._before = tuple(before)
        self._after = tuple(after)
        self._ended = ended
        self._stop = Event()
        self._lock = Lock()
        self._over: dict[Path, Event] = {}

    def run(
        self,
        cells: Sequence[Cell],
        *,
        seconds: float | None = None,
        first: Callable[[], None] | None = None,
    ) -> list[Ended]:
        """Run the cells that have not finished; a failure does not stop the others.

        An interrupt stops all processes, which can be resumed, and is raised again once they have
        saved their checkpoints. A second interrupt stops them at once.

        Args:
            cells: the runs.
            seconds: stop all processes after this time.
            first: called before the runs, while this process holds the comparison's lock.

        Returns:
            How the runs ended, without runs that were stopped or not started.

        Raises:
            LockedError: another process runs this comparison.
            ConfigError: the launcher cannot start runs.
        """
        with locked(self._root):
            self._launcher.ready()
            if first is not None:
                first()
            return self._run(cells, seconds)

    def _run(self, cells: Sequence[Cell], seconds: float | None) -> list[Ended]:
        timer = None if seconds is None else Timer(seconds, self._halt)
        if timer is not None:
            timer.daemon = True
            timer.start()
        pool = ThreadPoolExecutor(self._launcher.at_once)
        self._over = {cell.folder: Event() for cell in cells}
        # Runs that wait for others come last, so that no run waits for ever.
        ordered = sorted(cells, key=lambda cell: cell.match is not None)
        try:
            futures = [pool.submit(self._cell, cell) for cell in ordered]
            return [ended for future in futures if (ended := future.result()) is not None]
        except BaseException:
            self._halt()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._wait_for(pool)

    def _wait_for(self, pool: ThreadPoolExecutor) -> None:
        try:
            pool.shutdown()
        except BaseException:
            # A second request stops processes at once.
            self._halt()
            pool.shutdown()
            raise

    def _halt(self) -> None:
        """Start no more runs, and stop the running ones."""
        self._stop.set()
        self._launcher.stop()

    def _cell(self, cell: Cell) -> Ended | None:
        try:
            return self._ended_cell(cell)
        finally:
            self._over[cell.folder].set()

    def _ended_cell(self, cell: Cell) -> Ended | None:
        for run in () if cell.match is None else cell.match.runs:
            self._over[run].wait()
        if self._stop.is_set():
            return None
        try:
            cell = self._resolved(cell)
        except AangError as error:
            return self._told(Ended(cell, "new", f"Error: {error}"))
        state = state_of(cell, self._root)
        failure = None if state == "finished" else self._launcher.train(self._order(cell))
        if self._stop.is_set():
            return None
        return self._told(Ended(cell, state, failure))

    def _resolved(self, cell: Cell) -> Cell:
        """The cell with the compute or seconds of the run that it is matched with."""
        if cell.match is None:
            return cell
        return replace(cell, config=matched(cell.config, cell.match, self._root))

    def _told(self, ended: Ended) -> Ended:
        with self._lock:
            self._ended(ended)
        return ended

    def _order(self, cell: Cell) -> Order:
        """Write the files that a launcher needs to train the cell, and name them."""
        name = cell.folder.relative_to("runs")
        log = self._root / "logs" / name.with_suffix(".txt")
        options = log.with_suffix(".yaml")
        with writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("", encoding="utf-8")
            options.write_text(yaml.safe_dump(_options(cell)), encoding="utf-8")
        folder = self._root / cell.folder
        return Order(str(name), folder, options, log, self._before, self._after)


def _options(cell: Cell) -> dict[str, object]:
    """All options of the run, so that a new default cannot change it."""
    left = {"out", *_left_to_the_data(cell.config)}
    return cell.config.model_dump(mode="json", exclude=left, exclude_none=True)


def _left_to_the_data(config: TrainConfig) -> set[str]:
    """Options that nobody gave and whose values depend on the kind of the end task."""
    return {"task_type", "metric"} - config.model_fields_set


def make_root(root: Path) -> None:
    """Make the folder of a comparison if it does not exist.

    Raises:
        ConfigError: it cannot be made, or holds something other than a comparison.
        DataError: a link in it points outside.
    """
    if root.is_dir() and any(root.iterdir()) and not (root / "runs").is_dir():
        RunFolder.check_free(root)
    refuse_links(root)
    try:
        (root / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {root}: cannot make the folder: {error}") from error
