"""How large gains of the dev score usually are."""

import math
from collections.abc import Mapping


class Gains:
    """The root mean square of the gains so far, older ones counting less.

    A metric moves by tenths at first and by thousandths in the end, and one task's metric by more
    than another's. In units of its usual gain, a round is as good as a round can be told apart.

    Args:
        decay: γ; a gain of b rounds ago counts (1 − γ)^b.
    """

    def __init__(self, decay: float) -> None:
        self._kept = 1 - decay
        self._squares = 0.0
        self._count = 0.0

    def in_usual_ones(self, gain: float) -> float:
        """The gain divided by the usual one, itself counted in; 0 where nothing has ever moved."""
        self._squares = self._kept * self._squares + gain**2
        self._count = self._kept * self._count + 1
        usual = math.sqrt(self._squares / self._count)
        return gain / usual if usual > 0 else 0.0

    def state_dict(self) -> dict[str, float]:
        """Their squares and how many there were, older ones counting less."""
        return {"squares": self._squares, "count": self._count}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore saved gains."""
        self._squares, self._count = float(state["squares"]), float(state["count"])
