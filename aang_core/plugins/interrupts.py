"""Tells a user's interrupt from a ``KeyboardInterrupt`` that a plug-in raises itself."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """Notice whether SIGINT arrives in the block.

    Python delivers it to the main thread alone. Elsewhere, and where SIGINT has no handler in
    Python, no ``KeyboardInterrupt`` is the user's.

    Yields:
        A function that says whether it has arrived.
    """
    handler = signal.getsignal(signal.SIGINT)
    arrived = False

    def notice(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True
        assert callable(handler)
        handler(number, frame)

    notices = callable(handler) and threading.current_thread() is threading.main_thread()
    if notices:
        signal.signal(signal.SIGINT, notice)
    try:
        yield lambda: arrived
    finally:
        # A plug-in may have installed a handler of its own; it then replaces the former one.
        if notices and signal.getsignal(signal.SIGINT) is notice:
            signal.signal(signal.SIGINT, handler)
