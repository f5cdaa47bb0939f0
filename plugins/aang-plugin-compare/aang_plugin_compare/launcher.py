"""Where the runs of a comparison run: what a launcher is given, and what it hands back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Order:
    """A run to be trained.

    name: of the run, for messages. folder: where it goes; one that holds a ``config.yaml`` is gone
    on with. options: a file of YAML with all its options. log: where what it says is appended.
    before, after: options of ``aang`` and of ``aang train`` that no such file holds.
    """

    name: str
    folder: Path
    options: Path
    log: Path
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``aang`` that train it, from where it stands now."""
        if (self.folder / "config.yaml").is_file():
            what = ["--resume", str(self.folder)]
        else:
            what = [str(self.options), "--out", str(self.folder)]
        return [*self.before, "train", "--json", *what, *self.after]

    def failure(self, status: int, node: str = "") -> str:
        """Why it failed, by its last words. node: the machine, where there are several."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # What follows an error is how to go on, which the next call of the comparison does.
        errors = [line for line in lines if line.startswith("Error: ")]
        words = (errors or lines or ["it said nothing"])[-1]
        on = f" on {node}" if node else ""
        return f"{words} (exit status {status}{on}; {self.log})"


class Launcher(Protocol):
    """Trains runs, each in a process of its own.

    at_once: how many are handed to it at once.
    """

    at_once: int

    def ready(self) -> None:
        """See that runs can be started; this process holds the lock of the comparison's folder.

        Raises:
            ConfigError: they cannot.
        """

    def train(self, order: Order) -> str | None:
        """Train a run to its end; None, or why it failed. Called from several threads."""

    def stop(self) -> None:
        """Begin no other run, ask those under way to take their checkpoints and end.

        Those that are asked a second time end at once.
        """
