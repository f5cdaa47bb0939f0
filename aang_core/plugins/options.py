"""Options of primitives and weighters, checked where they come in."""

import math
from collections.abc import Sized
from typing import Any

from aang_core.errors import ConfigError


def number_option(
    option: str,
    value: Any,
    meaning: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above_low: bool = False,
    below_high: bool = False,
) -> float:
    """``value`` itself, a finite number from ``low`` to ``high``.

    option: what the message calls it, such as ``"weighter option lr"``.
    meaning: what the message tells the user to give.
    above_low, below_high: leave out ``low`` itself, or ``high``.

    Raises:
        ConfigError: it is no such number.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_number
        or not math.isfinite(value)
        or not low <= value <= high
        or (above_low and value == low)
        or (below_high and value == high)
    ):
        raise ConfigError(f"{option} is {value!r}; give {meaning}")
    return float(value)


def sample_size_option(n: object, auxiliaries: Sized) -> int:
    """How many auxiliary tasks a step trains: n of them, at most all, and all for None.

    Raises:
        ConfigError: n is no positive whole number.
    """
    if n is None:
        return len(auxiliaries)
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ConfigError(
            f"weighter option n is {n!r}; give the number of auxiliary tasks sampled each step, "
            "1 or more, or null to train all of them"
        )
    return min(n, len(auxiliaries))
