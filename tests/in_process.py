"""Commands that train many runs, in this process: no test waits for another one to start.

What only processes of their own can show is tested with ``LocalLauncher``, in the full tests.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

import pytest
from aang_plugin_compare.claim import attempts_so_far, claim_file, lay_claim
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.leashed import arguments_with_precision

from aang_core.cli import main

LAUNCHER = "aang_plugin_compare.launcher.LocalLauncher"
"""Where a test puts :class:`InProcess`, so that commands train in this process."""

NO_PAGE = ("--disable-plugin", "report")
"""Before a command, where no test looks at the page that each of its runs gets."""


@dataclass(frozen=True)
class Done:
    """A command that has ended, with the names that ``subprocess.run`` gives its parts."""

    returncode: int
    stdout: str
    stderr: str


Aang = Callable[..., Done]


def aang(*arguments: object) -> Done:
    """Call the command line."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = _status([str(argument) for argument in arguments])
    return Done(status, out.getvalue(), err.getvalue())


class InProcess:
    """A launcher that calls ``aang train`` in the thread that asks for the run.

    jobs: what ``--jobs`` says; it trains one run at a time.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.at_once = 1

    def ready(self) -> None:
        """Do nothing: a run can always begin here."""

    def train(self, order: Order) -> str | None:
        attempt = attempts_so_far(order.log) + 1
        order.begin_log(attempt, "this machine")
        lay_claim(claim_file(order.log), attempt, "this machine")
        # The thread of the command itself prints nothing while it waits for the run.
        log = order.log.open("a", encoding="utf-8")
        with log, redirect_stdout(log), redirect_stderr(log):
            status = _status(arguments_with_precision(order))
        return None if status == 0 else order.failure(status)

    def end(self, order: Order) -> bool:
        """Leave it alone: a run of few steps is over before anything could ask it to end."""
        return False

    def stop(self) -> None:
        """Leave them alone, as `end` does."""


class Interrupted(InProcess):
    """Ctrl-C is pressed as soon as a run trains, which is then asked to stop or to end."""

    def __init__(self, jobs: int = 1) -> None:
        super().__init__(jobs)
        self._asked = threading.Event()

    def train(self, order: Order) -> str | None:
        os.kill(os.getpid(), signal.SIGINT)
        assert self._asked.wait(60)
        return "Error: stopped by SIGTERM"

    def stop(self) -> None:
        self._asked.set()

    def end(self, order: Order) -> bool:
        self._asked.set()
        return True


def _status(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)
