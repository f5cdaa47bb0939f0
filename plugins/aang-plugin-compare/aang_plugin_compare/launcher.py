"""The interface of launchers, which train runs, and the orders that they are given."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml
from aang.config import TrainConfig, left_to_the_data

from aang_core.storage import write_file, writing

_ATTEMPT = re.compile(r"attempt [0-9]+ on ")


@dataclass(frozen=True)
class Order:
    """A run to be trained.

    Attributes:
        name: name of the run, for messages.
        folder: the run folder; if a run has started there, it is resumed.
        options: a YAML file with all its options.
        log: a file to which its output is appended.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.
    """

    name: str
    folder: Path
    options: Path
    log: Path
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def begin_log(self, attempt: int, node: str) -> None:
        """Append the line with which an attempt begins to the log.

        Args:
            attempt: number of the attempt, from 1.
            node: name of the machine.
        """
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"attempt {attempt} on {node}\n")

    @property
    def root(self) -> Path:
        """The folder that holds the logs and runs of all orders."""
        return self.log.parents[len(Path(self.name).parts)]

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to be resumed."""
        return (self.folder / "config.yaml").is_file()

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``aang`` that start or resume the run."""
        if self.has_begun:
            what = ["--resume", str(self.folder)]
        else:
            what = [str(self.options), "--out", str(self.folder)]
        return [*self.before, "train", "--json", *what, *self.after]

    def failure(self, status: int, node: str = "") -> str:
        """Why the run failed: the last error that its last attempt printed.

        Args:
            status: its exit status.
            node: name of the machine; empty if there is only one.
        """
        written = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        begins = [number for number, line in enumerate(written) if _ATTEMPT.match(line)]
        # The errors of earlier attempts are not those of this one.
        lines = written[begins[-1] + 1 :] if begins else written
        # The lines after an error say how to resume, which the next call of the comparison does.
        errors = [line for line in lines if line.startswith("Error: ")]
        words = (errors or lines or ["it said nothing"])[-1]
        on = f" on {node}" if node else ""
        return f"{words} (exit status {status}{on}; {self.log})"


def write_order(
    root: Path,
    folder: Path,
    config: TrainConfig,
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> Order:
    """Write the files that a launcher needs to train a run, and name them.

    Its output and its options go to the folder ``logs``, under the name that the run has in
    ``runs``. What earlier attempts have printed is kept.

    Args:
        root: the folder that holds both.
        folder: the run folder, relative to ``root``; it is somewhere in ``runs``.
        config: the run's options. All of them are written, so that a new default cannot change the
            run, but for those that depend on data that nobody has read yet.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.

    Raises:
        StorageError: a file cannot be written.
    """
    name = folder.relative_to("runs")
    log = root / "logs" / name.with_suffix(".txt")
    options = log.with_suffix(".yaml")
    left = {"out", *left_to_the_data(config)}
    given = config.model_dump(mode="json", exclude=left)
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        write_file(options, yaml.safe_dump(given))
    return Order(str(name), root / folder, options, log, before, after)


class Launcher(Protocol):
    """Trains runs, each in a process of its own.

    Attributes:
        at_once: number of runs that it trains at the same time.
    """

    at_once: int

    def ready(self) -> None:
        """Check that runs can be started; called while this process holds the folder's lock.

        Raises:
            ConfigError: they cannot be started.
        """

    def train(self, order: Order) -> str | None:
        """Train a run to its end. Called from several threads.

        Args:
            order: the run.

        Returns:
            Why it failed; None if it finished.
        """

    def end(self, order: Order) -> bool:
        """Ask one run to take a checkpoint and end; :meth:`train` then returns.

        Call it once for each run: a second call ends the run without a checkpoint.

        Args:
            order: the run.

        Returns:
            Whether it was running.
        """

    def stop(self) -> None:
        """Start no more runs, and ask running ones to take a checkpoint and end.

        A second call ends them at once.
        """


def wait_for(pool: ThreadPoolExecutor, stop: Callable[[], None]) -> None:
    """Wait until the runs of a pool have ended.

    Args:
        pool: its threads train runs that have been asked to end, or will end by themselves.
        stop: called if an interrupt arrives meanwhile, to end the runs at once.
    """
    try:
        pool.shutdown()
    except BaseException:
        stop()
        pool.shutdown()
        raise
