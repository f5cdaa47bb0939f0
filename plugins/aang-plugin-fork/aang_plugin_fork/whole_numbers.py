"""Options that are whole numbers."""

from typing import Any

from aang_core import ConfigError


def whole_number(option: str, value: Any, meaning: str) -> int:
    """Check that an option is a whole number above zero, and return it.

    Raises:
        ConfigError: it is not such a number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"weighter option {option} is {value!r}; give {meaning}, 1 or more")
    return value
