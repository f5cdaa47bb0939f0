"""A round of a bandit: k steps with the same coefficients, and the dev score after them."""

from collections.abc import Mapping

from aang_core import Workbench, whole_number_option


class Rounds:
    """Trains k steps at a time and scores the result on a number of dev rows.

    Args:
        k: steps per round.
        dev_rows: number of dev rows to score, the same ones throughout the run; None for all.

    Raises:
        ConfigError: one of them is not a positive whole number.
    """

    def __init__(self, k: int, dev_rows: int | None) -> None:
        self.k = whole_number_option("weighter option k", k)
        if dev_rows is not None:
            whole_number_option("weighter option dev_rows", dev_rows)
        self.dev_rows = dev_rows

    def score(self, bench: Workbench) -> float:
        """The dev score of the current model.

        Raises:
            AangError: it is not finite.
        """
        return bench.dev_score(self.dev_rows)

    def train(self, bench: Workbench, coefficients: Mapping[str, float]) -> float | None:
        """Train k steps on Σ coefficient · loss.

        Returns:
            The dev score afterwards, or None if the run ends before the round does, since fewer
            steps cannot be compared with k and nothing is left to learn for.

        Raises:
            AangError: the score is not finite.
        """
        steps = min(self.k, bench.steps_left)
        for _ in range(steps):
            bench.step(coefficients, frozenset())
        return self.score(bench) if steps == self.k else None
