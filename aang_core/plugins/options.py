"""Checks for the options of primitives and weighters."""

import math
from collections.abc import Sized
from typing import Any

from aang_core.errors import ConfigError


def number_option(
    option: str,
    value: Any,
    meaning: str = "",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above_low: bool = False,
    below_high: bool = False,
) -> float:
    """Check that an option is a finite number from ``low`` to ``high``.

    Args:
        option: the name of the option in the message, such as ``"weighter option lr"``.
        value: what the user gave.
        meaning: what the message tells the user to give; by default a number with these limits.
        low: the smallest value allowed.
        high: the largest value allowed.
        above_low: refuse ``low`` itself.
        below_high: refuse ``high`` itself.

    Returns:
        ``value`` as a float.

    Raises:
        ConfigError: ``value`` is not such a number.

    Examples:
        >>> from aang_core import ConfigError, number_option
        >>> number_option("weighter option lr", 1, low=0, above_low=True)
        1.0
        >>> try:
        ...     number_option("weighter option lr", 0, low=0, above_low=True)
        ... except ConfigError as error:
        ...     print(error)
        weighter option lr is 0; give a number above 0
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_number
        or not math.isfinite(value)
        or not low <= value <= high
        or (above_low and value == low)
        or (below_high and value == high)
    ):
        limits = []
        if low > -math.inf:
            limits.append(f"{'above' if above_low else 'of at least'} {low:g}")
        if high < math.inf:
            limits.append(f"{'below' if below_high else 'at most'} {high:g}")
        meaning = meaning or f"a number {' and '.join(limits)}"
        raise ConfigError(f"{option} is {value!r}; give {meaning}")
    return float(value)


def whole_number_option(option: str, value: Any, meaning: str = "", *, low: int = 1) -> int:
    """Check that an option is a whole number of at least ``low``.

    Args:
        option: the name of the option in the message, such as ``"weighter option steps"``.
        value: what the user gave.
        meaning: what the message tells the user to give; by default a whole number from ``low`` on.
        low: the smallest value allowed.

    Returns:
        ``value``.

    Raises:
        ConfigError: ``value`` is not an ``int``, is a ``bool``, or is smaller than ``low``.

    Examples:
        >>> from aang_core import ConfigError, whole_number_option
        >>> whole_number_option("weighter option steps", 5)
        5
        >>> try:
        ...     whole_number_option("mine.limit", 2.5, "a number of texts, 0 or more", low=0)
        ... except ConfigError as error:
        ...     print(error)
        mine.limit is 2.5; give a number of texts, 0 or more
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        meaning = meaning or f"a whole number, {low} or more"
        raise ConfigError(f"{option} is {value!r}; give {meaning}")
    return value


def sample_size_option(n: object, auxiliaries: Sized) -> int:
    """The number of auxiliary tasks that a step trains.

    Args:
        n: what the user gave; None trains all of them.
        auxiliaries: all auxiliary tasks.

    Returns:
        ``n``, or the number of auxiliary tasks if that is smaller.

    Raises:
        ConfigError: ``n`` is not a positive whole number.

    Examples:
        >>> from aang_core import sample_size_option
        >>> tasks = ["denoise", "end-task", "tf-idf"]
        >>> [sample_size_option(n, tasks) for n in (2, 9, None)]
        [2, 3, 3]
    """
    if n is None:
        return len(auxiliaries)
    size = whole_number_option(
        "weighter option n",
        n,
        "the number of auxiliary tasks sampled each step, 1 or more, or null to train all of them",
    )
    return min(size, len(auxiliaries))
