"""``aang`` in processes that need not import anything, because the process that starts them has."""

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from aang_core.cli import main


class Forked:
    """A process that was forked from this one.

    call: what it does; its exit status is that of SystemExit, 0 without one, 1 for an exception.
    log: where its standard output and standard error go.
    """

    def __init__(self, call: Callable[[], object], log: Path) -> None:
        self.began = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._be_the_child(call, log)
        self._status: int | None = None

    def ended(self) -> bool:
        """Whether it has ended."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def wait(self) -> int:
        """Its exit status; negative for the signal that killed it."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def kill(self) -> None:
        """Send SIGKILL, which cannot be caught."""
        os.kill(self.pid, signal.SIGKILL)

    @staticmethod
    def _be_the_child(call: Callable[[], object], log: Path) -> None:
        status = 1
        try:
            descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            call()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def aang(
    arguments: Sequence[object], log: Path, before: Callable[[], None] = lambda: None
) -> Forked:
    """``aang`` with these arguments, in a process that first calls ``before``."""

    def run() -> None:
        before()
        main([str(argument) for argument in arguments])

    return Forked(run, log)


def import_what_a_run_needs(arguments: Sequence[object], names: Path) -> None:
    """Have a run in another process list the modules that it imports, and import them here, too.

    It is not done by training here: a process that has computed gradients should not be forked.

    names: a file for the list of modules; the run's output goes beside it. If it exists, it is the
        list of an earlier run.
    """

    def run() -> None:
        with suppress(SystemExit):
            main([str(argument) for argument in arguments])
        names.write_text("\n".join(sys.modules), encoding="utf-8")

    if not names.exists() and Forked(run, names.with_suffix(".log")).wait() != 0:
        raise SystemExit(f"the first run failed, see {names.with_suffix('.log')}")
    for name in names.read_text(encoding="utf-8").split():
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
