"""Being asked to stop: at the next boundary between rounds, with nothing lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Training has stopped because a signal asked for it; what was trained is in a checkpoint.

    Not an ``Exception``: like ``KeyboardInterrupt`` it is for whoever started the training.
    """

    def __init__(self, number: int, step: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} at step {step}")
        self.number = number
        self.step = step


class Interruption:
    """Whether a signal has asked to stop; ``number`` is the signal, or None."""

    def __init__(self) -> None:
        self.number: int | None = None

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            # Asked twice: whoever asks does not want to wait for the end of the round.
            raise KeyboardInterrupt
        self.number = number


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Take SIGINT and SIGTERM as a wish to stop, inside; a second one stops at once.

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
