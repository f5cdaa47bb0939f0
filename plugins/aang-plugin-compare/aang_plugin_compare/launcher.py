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
        folder: the run folder; a run that has begun there is resumed.
        options: a YAML file with all its options.
        log: a file to which its output is appended.
        before: options of ``aang``, which stand before the command.
        after: options of ``aang train`` that cannot stand in a file.
    """

    name: str
    folder: Path
    options: Path
    log: Path
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``aang`` that begin the run, or resume it."""
        if (self.folder / "config.yaml").is_file():
            what = ["--resume", str(self.folder)]
        else:
            what = [str(self.options), "--out", str(self.folder)]
        return [*self.before, "train", "--json", *what, *self.after]

    def failure(self, status: int, node: str = "") -> str:
        """Why the run failed: the last error that it printed.

        Args:
            status: its exit status.
            node: the machine, where there are several.
        """
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # What follows an error is how to go on, which the next call of the comparison does.
        errors = [line for line in lines if line.startswith("Error: ")]
        words = (errors or lines or ["it said nothing"])[-1]
        on = f" on {node}" if node else ""
        return f"{words} (exit status {status}{on}; {self.log})"


class Launcher(Protocol):
    """Trains runs, each in a process of its own.

    Attributes:
        at_once: how many runs it trains at the same time.
    """

    at_once: int

    def ready(self) -> None:
        """Check that runs can be started; this process holds the lock of the comparison's folder.

        Raises:
            ConfigError: they cannot.
        """

    def train(self, order: Order) -> str | None:
        """Train a run to its end. Called from several threads.

        Returns:
            None, or why it failed.
        """

    def stop(self) -> None:
        """Start no more runs, and ask running ones to take a checkpoint and end.

        A second call ends them at once.
        """
