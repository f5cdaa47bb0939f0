"""Training the runs of a comparison, each in a separate process; finished runs are kept."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock, Timer

from aang_core import AangError, Registry
from aang_core.storage import locked
from aang_plugin_compare.cells import Cell
from aang_plugin_compare.launcher import Launcher, Order, wait_for, write_order
from aang_plugin_compare.matching import matched
from aang_plugin_compare.run_folders import State, remove_checkpoints, run_state


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


class Runner:
    """Runs cells, several at the same time.

    Args:
        root: the folder of the comparison.
        launcher: trains the runs.
        registry: where the default space and weighter are looked up.
        ended: called after each run, one call at a time, from the thread that ran it.
        began: called when a run begins to train, from the thread that trains it.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    def __init__(
        self,
        root: Path,
        launcher: Launcher,
        registry: Registry,
        ended: Callable[[Ended], None],
        *,
        began: Callable[[Cell], None] = lambda cell: None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._launcher = launcher
        self._registry = registry
        self._before = tuple(before)
        self._after = tuple(after)
        self._ended = ended
        self._began = began
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
            ConfigError: the launcher cannot start runs, or the folder of a run holds one with other
                options. Whether that of a matched run does is only known when its turn comes, and
                then counts as a failure.
        """
        with locked(self._root):
            self._launcher.ready()
            for cell in cells:
                if cell.match is None:
                    self._state(cell)
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
            wait_for(pool, self._halt)

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
            state = self._state(cell)
        except AangError as error:
            return self._told(Ended(cell, "new", f"Error: {error}"))
        failure = None
        if state != "finished":
            self._began(cell)
            failure = self._launcher.train(self._order(cell))
        if self._stop.is_set():
            return None
        if failure is None:
            remove_checkpoints(self._root / cell.folder)
        return self._told(Ended(cell, state, failure))

    def _resolved(self, cell: Cell) -> Cell:
        """The cell with the compute or seconds of the run that it is matched with."""
        if cell.match is None:
            return cell
        return replace(cell, config=matched(cell.config, cell.match, self._root))

    def _state(self, cell: Cell) -> State:
        return run_state(self._root / cell.folder, cell.config, self._registry)

    def _told(self, ended: Ended) -> Ended:
        with self._lock:
            self._ended(ended)
        return ended

    def _order(self, cell: Cell) -> Order:
        return write_order(
            self._root, cell.folder, cell.config, before=self._before, after=self._after
        )
