"""Stopping on a signal: at the next boundary between rounds, with nothing lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal has stopped training.

    It is a ``KeyboardInterrupt``, because a signal can arrive anywhere, even in a plug-in's code,
    and code that catches ``Exception`` must not catch it.

    Args:
        number: the signal.
        step: the step that training stopped after and that is saved in a checkpoint; None if it
            stopped at once.
    """

    def __init__(self, number: int, step: int | None = None) -> None:
        where = "" if step is None else f" at step {step}"
        super().__init__(f"stopped by {signal.Signals(number).name}{where}")
        self.number = number
        self.step = step

    @property
    def status(self) -> int:
        """The exit status that shells report for a process ended by this signal."""
        return 128 + self.number


class Interruption:
    """Raises `Interrupted` as soon as a signal arrives, unless it is deferred.

    Attributes:
        number: the signal that has asked to stop; None if there was none.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._deferred = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside the block, the first signal waits for `check`; a second one stops at once.

        A signal to a whole group of processes also ends those that compile kernels or read data for
        this one, so what fails after a signal counts as stopped by it.

        Raises:
            Interrupted: the block failed after a signal.
        """
        self._deferred = True
        try:
            yield
        except Exception as error:
            if self.number is None:
                raise
            raise Interrupted(self.number) from error
        finally:
            self._deferred = False

    def check(self, step: int) -> None:
        """Stop if a signal has asked for it.

        Args:
            step: the current step.

        Raises:
            Interrupted: a signal has arrived.
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
    """Handle SIGINT and SIGTERM inside the block.

    Outside the main thread, where Python cannot handle signals, nothing changes.
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
