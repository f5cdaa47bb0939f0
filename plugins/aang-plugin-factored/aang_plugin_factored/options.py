"""The options of the weighter, checked where they come in."""

import math
from collections.abc import Sized

from aang_core import ConfigError


def sample_size(n: int | None, auxiliaries: Sized) -> int:
    """How many objectives a step trains: n of them, at most all, and all for None.

    Raises:
        ConfigError: n is no positive whole number.
    """
    if n is None:
        return len(auxiliaries)
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ConfigError(
            f"weighter option n is {n!r}; give the number of objectives sampled each step, "
            "1 or more, or null to train all of them"
        )
    return min(n, len(auxiliaries))


def learning_rate(name: str, value: float) -> float:
    """``value`` itself, a finite number that is not negative.

    Raises:
        ConfigError: it is not.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise ConfigError(
            f"weighter option {name} is {value!r}; give a number that is not negative"
        )
    return float(value)


def initial_weight(value: float) -> float:
    """``value`` itself, a first λ_e strictly between 0 and 1.

    Raises:
        ConfigError: it is not.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ConfigError(
            f"weighter option end_task_weight is {value!r}; give the λ_e to start from, a number "
            "between 0 and 1, both excluded because no finite logit stands for them"
        )
    return float(value)
