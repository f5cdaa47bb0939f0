"""Watching the head of a Ray cluster, which Ray itself lets go of in its own way.

Without its head, calls of Ray hang, and after a minute Ray ends the process. If a new head comes
to the same address meanwhile, Ray aborts the process, with a stack trace. So the command has to
notice before, without any call of Ray.
"""

import os
import socket
import sys
import time
from collections.abc import Callable
from threading import Event, Thread

from aang_core.cli import echo

EVERY = 1.0
"""Seconds between two looks."""
REFUSALS = 3
"""So many in a row mean that the head is gone: its port is closed, which no busy head does."""
SILENCE_SECONDS = 45.0
"""A head that cannot be reached at all, and is not refused, is gone after this time."""
_ANSWER_SECONDS = 5.0
_SHOW_CURSOR = "\x1b[?25h"


class HeadWatch:
    """Ends this process with a line and exit status 2 if the head of the cluster is lost.

    The comparison's lock is left behind; the next call sees that its process is gone.

    Args:
        address: ``HOST:PORT`` of the head.
        every: seconds between two looks.
    """

    def __init__(self, address: str, *, every: float = EVERY) -> None:
        host, _, port = address.rpartition(":")
        self._address = address
        self._place = host.strip("[]"), int(port)
        self._every = every
        self._over = Event()
        self._missed = 0
        self._heard = time.monotonic()
        self.before_the_end: Callable[[], None] = lambda: None
        """Called before the process ends; calls of Ray would hang there."""

    @property
    def answers(self) -> bool:
        """Whether the head was there at the last look; if not, calls of Ray may hang."""
        return self._missed == 0

    def start(self) -> None:
        """Begin to watch, in a thread."""
        Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            if self._is_lost() and not self._over.is_set():
                self._end()

    def _is_lost(self) -> bool:
        try:
            socket.create_connection(self._place, _ANSWER_SECONDS).close()
        except ConnectionRefusedError:
            self._missed += 1
            return self._missed >= REFUSALS
        except OSError:
            self._missed += 1
            return time.monotonic() - self._heard > SILENCE_SECONDS
        self._missed = 0
        self._heard = time.monotonic()
        return False

    def _end(self) -> None:
        try:
            self.before_the_end()
        finally:
            if sys.stderr.isatty():
                sys.stderr.write(_SHOW_CURSOR)  # bars hide it
            echo(
                f"Error: the head of the Ray cluster at {self._address} is gone. Finished runs and "
                "checkpoints are kept: start a head again, and the same command goes on",
                err=True,
            )
            sys.stderr.flush()
            # Other threads may hang in calls of Ray, which nothing can interrupt.
            os._exit(2)
