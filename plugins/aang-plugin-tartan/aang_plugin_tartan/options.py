"""The options that weighters of this plug-in share, checked where they come in."""

import math
from collections.abc import Sized

from aang_core import ConfigError


def sample_size(n: int | None, auxiliaries: Sized) -> int:
    """How many auxiliary tasks a step trains: n of them, at most all, and all for None.

    Raises:
        ConfigError: n is no positive whole number.
    """
    if n is None:
        return len(auxiliaries)
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ConfigError(
            f"weighter option n is {n!r}; give the number of auxiliary tasks sampled each step, "
            "1 or more, or leave it out to train all of them"
        )
    return min(n, len(auxiliaries))


def number(name: str, value: float, low: float, high: float, meaning: str) -> float:
    """``value`` itself, a finite number with low ≤ value ≤ high.

    Raises:
        ConfigError: it is not; ``meaning`` tells the user what to give.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not low <= value <= high:
        raise ConfigError(f"weighter option {name} is {value!r}; give {meaning}")
    return float(value)
