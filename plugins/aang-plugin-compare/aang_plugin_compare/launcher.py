"""The interface of launchers, which train the runs of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``aang`` that start or resume the run."""
        if (self.folder / "config.yaml").is_file():
            what = ["--resume", str(self.folder)]
        else:
            what = [str(self.options), "--out", str(self.folder)]
        return [*self.before, "train", "--json", *what, *self.after]

    def failure(self, status: int, node: str = "") -> str:
        """Why the run failed: the last error that it printed.

        Args:
            status: its exit status.
            node: name of the machine; empty if there is only one.
        """
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # The lines after an error say how to resume, which the next call of the comparison does.
        errors = [line for line in lines if line.startswith("Error: ")]
        words = (errors or lines or ["it said nothing"])[-1]
        on = f" on {node}" if node else ""
        return f"{words} (exit status {status}{on}; {self.log})"


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

    def stop(self) -> None:
        """Start no more runs, and ask running ones to take a checkpoint and end.

        A second call ends them at once.
        """
