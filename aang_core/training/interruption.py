"""Being asked to stop: at the next boundary between rounds, with nothing lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal has stopped training.

    It is for whoever started the training: whatever lets ``KeyboardInterrupt`` pass lets it pass.
    A signal may come in the middle of anything, a plug-in's code included.

    step: where it stopped, with what was trained in a checkpoint; None if it stopped at once.
    """

    def __init__(self, number: int, step: int | None = None) -> None:
        where = "" if step is None else f" at step {step}"
        super().__init__(f"stopped by {signal.Signals(number).name}{where}")
        self.number = number
        self.step = step

    @property
    def status(self) -> int:
        """The exit status that shells give a process which this signal ended."""
        return 128 + self.number


class Interruption:
    """Whether a signal has asked to stop; ``number`` is the signal, or None.

    It stops at once, by :class:`Interrupted`, unless it is deferred.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._deferred = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, the first signal is kept until :meth:`check`; a second one stops at once."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def check(self, step: int) -> None:
        """Stop if it was asked for.

        Raises:
            Interrupted: it was.
        """
        if self.number is not None:
            raise Interrupted(self.number, step)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        again = self.number is not None
        self.number = number
        if again or not self._deferred:
            raise Interrupted(number)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Take SIGINT and SIGTERM as a wish to stop, inside.

    Outside the main thread, where signals cannot be handled, nothing is taken.
    """
    asked = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked._asked) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
