"""How long a training takes, and one that ends when a time is spent."""

import time
from collections.abc import Mapping

from aang_core.tasks.processes import ALONE, Processes


class Clock:
    """Seconds of one training, over all its interruptions.

    It stands still between two looks, so that all that goes by it in a step sees one time.

    limit: seconds after which training ends; None for a training that counts steps.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.seconds = 0.0
        self._began = time.perf_counter()

    def start(self) -> None:
        """Go on from the seconds that there have been."""
        self._began = time.perf_counter() - self.seconds

    def look(self, processes: Processes = ALONE) -> None:
        """See what time it is: where an end depends on it, the same in all processes."""
        now = time.perf_counter() - self._began
        self.seconds = now if self.limit is None else processes.agree([now])[0]

    def state_dict(self) -> dict[str, float]:
        """The seconds so far."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore the seconds so far."""
        self.seconds = state["seconds"]

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return self.limit is not None and self.seconds >= self.limit

    @property
    def share(self) -> float:
        """How much of the time is over, from 0 to 1; 0 without a limit."""
        return 0.0 if self.limit is None else min(1.0, self.seconds / self.limit)
