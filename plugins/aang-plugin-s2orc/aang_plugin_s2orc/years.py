"""Ranges of years of publication."""

import re
from dataclasses import dataclass

from aang_core import ConfigError

_RANGE = re.compile(r"(?P<first>\d{4})?\s*(?P<to>[-–])?\s*(?P<last>\d{4})?")


@dataclass(frozen=True)
class Years:
    """A range of years.

    Attributes:
        first: the first year; None for an open range.
        last: the last year, included; None for an open range.
        said: the range as the user wrote it.
    """

    first: int | None
    last: int | None
    said: str

    @classmethod
    def parse(cls, option: object) -> "Years":
        """Parse ``2015``, ``2010-2020``, ``2015-`` or ``-2005``.

        Raises:
            ConfigError: it has another form, or ends before it begins.
        """
        said = str(option).strip()
        match = None if isinstance(option, bool) else _RANGE.fullmatch(said)
        first, to, last = match.group("first", "to", "last") if match else (None, None, None)
        if (first is None and last is None) or (last is not None and to is None):
            raise ConfigError(
                f"s2orc.years is {option!r}; give a year or a range of years, such as 2015, "
                "2010-2020, 2015- or -2005."
            )
        if to is None:
            last = first
        years = cls(int(first) if first else None, int(last) if last else None, said)
        if years.first and years.last and years.first > years.last:
            raise ConfigError(f"s2orc.years is {option!r}, which ends before it begins.")
        return years

    def __contains__(self, year: int) -> bool:
        """Whether ``year`` is in the range."""
        return (self.first or year) <= year <= (self.last or year)
