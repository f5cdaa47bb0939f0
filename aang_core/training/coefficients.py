"""What a weighter multiplies losses with, and draws objectives by, checked as it comes in."""

import math
from collections.abc import Mapping, Sequence

from aang_core.errors import WeighterError


def check_coefficients(what: str, coefficients: Mapping[str, float]) -> None:
    """Refuse coefficients that no loss can have.

    Args:
        what: what they are of, such as ``"a step"``.
        coefficients: by task.

    Raises:
        WeighterError: one of them is negative or not finite.
    """
    for name, coefficient in coefficients.items():
        _expect_weight(f"the coefficient of {name} in {what}", coefficient)


def check_odds(odds: Mapping[str, float], names: Sequence[str], n: int | None) -> None:
    """Refuse weights that n of the objectives ``names`` cannot be drawn by; None for all of them.

    Raises:
        WeighterError: they are of other objectives, one is negative or not finite, or too few are
            above zero.
    """
    if set(odds) != set(names):
        odd = ", ".join(sorted(set(odds) ^ set(names)))
        raise WeighterError(f"the weights of a draw are not those of the auxiliary tasks: {odd}")
    for name, weight in odds.items():
        _expect_weight(f"the weight of {name} in a draw", weight)
    possible = sum(weight > 0 for weight in odds.values())
    if n is not None and possible < n < len(names):
        raise WeighterError(f"a draw of {n} tasks, of which fewer have a weight above zero")


def mean_coefficients(draws: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The coefficients that the mean of the draws' losses has; a task counts where it was drawn."""
    if len(draws) == 1:
        return dict(draws[0])
    names = dict.fromkeys(name for draw in draws for name in draw)
    return {name: math.fsum(d.get(name, 0.0) for d in draws) / len(draws) for name in names}


def _expect_weight(what: str, value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise WeighterError(f"{what}: expected a finite number, not negative, got {value!r}")
