"""How long training takes, and whether its time limit is reached."""

import time
from collections.abc import Mapping

from aang_core.tasks.processes import ALONE, Processes
from aang_core.tasks.saved import saved_number, wrong


class Clock:
    """Seconds that one training has taken, over all interruptions.

    The time changes only when `look` is called, so everything that reads it during a step sees the
    same value.

    Args:
        limit: seconds after which training ends; None for a training limited by steps.

    Attributes:
        seconds: time of training as of the last `look`.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.seconds = 0.0
        self._began = time.perf_counter()

    def start(self) -> None:
        """Continue counting from ``seconds``."""
        self._began = time.perf_counter() - self.seconds

    def look(self, processes: Processes = ALONE) -> None:
        """Read the time; with a limit, all processes agree on it.

        Args:
            processes: the processes that share the training.
        """
        now = time.perf_counter() - self._began
        self.seconds = now if self.limit is None else processes.agree([now])[0]

    def state_dict(self) -> dict[str, float]:
        """The seconds so far."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore the seconds so far.

        Raises:
            SavedStateError: the state has none.
        """
        seconds = saved_number(state, "seconds")
        if seconds < 0:
            raise wrong("seconds", "a number that is not negative", seconds)
        self.seconds = seconds

    @property
    def spent(self) -> bool:
        """Whether the time limit is reached."""
        return self.limit is not None and self.seconds >= self.limit

    @property
    def share(self) -> float:
        """Share of the time limit that has passed, from 0 to 1; 0 without a limit."""
        return 0.0 if self.limit is None else min(1.0, self.seconds / self.limit)
