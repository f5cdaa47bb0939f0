"""What the bandits share: rounds of k steps with the same coefficients, scored on dev."""

from collections.abc import Mapping
from typing import Any

from aang_core import Weighter, Workbench, whole_number_option


class ScoredRounds(Weighter):
    """A weighter that trains k steps at a time and scores the result on a number of dev rows.

    Args:
        k: steps per round.
        dev_rows: number of dev rows to score, the same ones throughout the run; None for all.

    Raises:
        ConfigError: one of them is not a positive whole number.
    """

    round_steps: int

    def __init__(self, k: int, dev_rows: int | None) -> None:
        self.round_steps = whole_number_option("weighter option k", k)
        if dev_rows is not None:
            whole_number_option("weighter option dev_rows", dev_rows)
        self._dev_rows = dev_rows
        self._score: float | None = None
        self._last: dict[str, Any] = {}

    def score_before(self, bench: Workbench) -> float:
        """The dev score after the last round, or that of the model at the start.

        Raises:
            AangError: it is not finite.
        """
        if self._score is None:
            self._score = bench.dev_score(self._dev_rows)
        return self._score

    def score_after(self, bench: Workbench, coefficients: Mapping[str, float]) -> float | None:
        """Train k steps on Σ coefficient · loss.

        Returns:
            The dev score afterwards, or None if the run ends before the round does, since fewer
            steps cannot be compared with k and nothing is left to learn for.

        Raises:
            AangError: the score is not finite.
        """
        steps = min(self.round_steps, bench.steps_left)
        for _ in range(steps):
            bench.step(coefficients, frozenset())
        return bench.dev_score(self._dev_rows) if steps == self.round_steps else None
