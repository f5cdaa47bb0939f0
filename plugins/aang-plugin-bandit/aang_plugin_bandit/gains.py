"""The usual size of a gain in dev score."""

import math
from collections.abc import Mapping


class Gains:
    """The root mean square of the gains so far, with less weight on older ones.

    A metric changes by tenths at first and by thousandths in the end, and by different amounts on
    different tasks. In units of the usual gain, rounds can be compared.

    Args:
        decay: γ; a gain of b rounds ago has the weight (1 − γ)^b.
    """

    def __init__(self, decay: float) -> None:
        self._kept = 1 - decay
        self._squares = 0.0
        self._count = 0.0

    def in_usual_ones(self, gain: float) -> float:
        """Divide the gain by the usual one, which includes it; 0 if no score has ever changed."""
        self._squares = self._kept * self._squares + gain**2
        self._count = self._kept * self._count + 1
        usual = math.sqrt(self._squares / self._count)
        return gain / usual if usual > 0 else 0.0

    def state_dict(self) -> dict[str, float]:
        """The weighted sum of the squared gains, and of their weights."""
        return {"squares": self._squares, "count": self._count}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Restore saved gains."""
        self._squares, self._count = float(state["squares"]), float(state["count"])
