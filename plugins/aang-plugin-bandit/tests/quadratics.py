"""The problem of these tests: the end task wants the origin, from (4, -4)."""

from collections.abc import Sequence

from aang_testing import Pull, QuadraticProblem, quadratic_problem


def problem(auxiliaries: Sequence[Pull], *, seed: int = 0) -> QuadraticProblem:
    """Steps are plain gradient descent at a rate of 0.1; the dev score is −‖θ‖."""
    end = Pull("end", (0.0, 0.0))
    return quadratic_problem(end, auxiliaries, start=(4.0, -4.0), lr=0.1, seed=seed)
