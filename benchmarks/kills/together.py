"""Two processes that resume a killed run at once must never both hold its folder."""

import os
import random
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aang.runs.resume import opened

from aang_core.errors import LockedError
from aang_core.tasks.processes import ALONE
from benchmarks.kills.forked import Forked

_HOLDS_SECONDS = 0.005
_APART_SECONDS = 0.001
"""Most time between the two, so that they meet at every point of the takeover."""


@dataclass
class Together:
    """What happened in all trials.

    Attributes:
        trials: how many there were.
        both: trials in which both held the folder at the same time.
        neither: trials in which neither got it.
        refused: processes that were refused, of two in each trial.
    """

    trials: int = 0
    both: int = 0
    neither: int = 0
    refused: int = 0

    def __str__(self) -> str:
        """A sentence for the documentation."""
        return (
            f"two processes resumed a killed run at once {self.trials} times: {self.both} times "
            f"both held it, {self.neither} times none, {self.refused} processes were refused"
        )


def resume_together(folder: Path, trials: int) -> Together:
    """Kill a process that holds a run folder, and let two others resume it, many times."""
    found = Together()
    draw = random.Random("together")
    run = folder / "run"
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").touch()
    log, events = folder / "log.txt", folder / "events.txt"
    for _ in range(trials):
        events.write_text("")
        _kill_the_holder(run, events, log)
        events.write_text("")
        begin = time.monotonic() + 0.02
        starts = (begin, begin + draw.uniform(-_APART_SECONDS, _APART_SECONDS))
        two = [Forked(partial(_resume, run, events, at), log) for at in starts]
        if [process.wait() for process in two] != [0, 0]:
            raise SystemExit(f"a process that resumed failed, see {log}")
        _count(found, events.read_text().split())
    return found


def _kill_the_holder(run: Path, events: Path, log: Path) -> None:
    holder = Forked(partial(_resume, run, events, 0.0, 3600.0), log)
    while "in" not in events.read_text() and not holder.ended():
        time.sleep(0.001)
    holder.kill()
    holder.wait()


def _resume(run: Path, events: Path, at: float, seconds: float = _HOLDS_SECONDS) -> None:
    while time.monotonic() < at:
        pass
    try:
        with opened(run, resume=True, processes=ALONE):
            _tell(events, "in")
            time.sleep(seconds)
            _tell(events, "out")
    except LockedError:
        _tell(events, "refused")


def _tell(events: Path, word: str) -> None:
    descriptor = os.open(events, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, f"{word}\n".encode())
    os.close(descriptor)


def _count(found: Together, words: list[str]) -> None:
    inside, most = 0, 0
    for word in words:
        inside += {"in": 1, "out": -1}.get(word, 0)
        most = max(most, inside)
    found.trials += 1
    found.both += most > 1
    found.neither += most == 0
    found.refused += words.count("refused")
