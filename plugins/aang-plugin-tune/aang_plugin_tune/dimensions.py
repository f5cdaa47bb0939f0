"""What a search may give an option: one of some values, or a number in a range.

As text: ``1e-5,1e-4`` are values, each in YAML; ``1e-5..1e-3`` is a range, of whole numbers if both
ends are whole; ``1e-5..1e-3:log`` is searched by its logarithm, and ``8..64:8`` in steps of 8.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aang_core import ConfigError
from aang_core.storage import NumberLoader, parse_yaml

if TYPE_CHECKING:
    from optuna.trial import Trial

_RANGE = re.compile(r"\s*(?P<low>[^\s.]\S*?)\.\.(?P<high>[^\s:]+)(?::(?P<how>\S+))?\s*")
_FORMS = "give values such as 1e-5,1e-4, or a range such as 1e-5..1e-3:log or 8..64:8"


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(_text, self.values))

    @property
    def probes(self) -> Sequence[Any]:
        """Values that show whether an option takes what this dimension proposes."""
        return self.values

    def suggest(self, trial: "Trial", name: str) -> Any:
        """The value that a trial of Optuna gets."""
        return json.loads(trial.suggest_categorical(name, [self.stored(v) for v in self.values]))

    def stored(self, value: Any) -> str:
        """A value as text, because Optuna stores no lists or mappings."""
        return json.dumps(value)


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included.

    Attributes:
        low: the least number; whole if ``high`` is whole.
        high: the greatest number.
        log: whether the search is over the logarithm.
        step: the distance between numbers; None for any number, or whole number, between.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __str__(self) -> str:
        how = ":log" if self.log else f":{self.step:g}" if self.step is not None else ""
        return f"{self.low}..{self.high}{how}"

    @property
    def probes(self) -> Sequence[float]:
        """Values that show whether an option takes what this dimension proposes."""
        if self._whole or self.step is not None:
            return (self.low, self.high)
        middle = (self.low * self.high) ** 0.5 if self.log else (self.low + self.high) / 2
        return (self.low, middle, self.high)

    @property
    def _whole(self) -> bool:
        return isinstance(self.low, int)

    def suggest(self, trial: "Trial", name: str) -> float:
        """The value that a trial of Optuna gets."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(name, self.low, self.high, step=step, log=self.log)
        return trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log)


Dimension = Choices | Range


def read_dimension(value: object, where: str) -> Dimension:
    """What the user wrote for one option, on the command line or in a file.

    Args:
        value: text as described above, a list of values, or a single value.
        where: the place, for messages.

    Raises:
        ConfigError: it is neither values nor a range, the range is empty, there is no value, or one
            is given twice.

    Examples:
        >>> from aang_plugin_tune.dimensions import read_dimension
        >>> read_dimension("1e-5..1e-3:log", "--search lr")
        Range(low=1e-05, high=0.001, log=True, step=None)
        >>> read_dimension("td, td+ed", "--search space")
        Choices(values=('td', 'td+ed'))
    """
    if isinstance(value, str):
        if found := _RANGE.fullmatch(value):
            return _range(found["low"], found["high"], found["how"], where)
        value, _ = parse_yaml(f"[{value}]", where, NumberLoader)
    return _choices(value if isinstance(value, list | tuple) else [value], where)


def _choices(values: Iterable[Any], where: str) -> Choices:
    given = tuple(values)
    if not given:
        raise ConfigError(f"{where}: has no value to try; {_FORMS}")
    try:
        texts = [json.dumps(value, allow_nan=False) for value in given]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}; {_FORMS}") from error
    for text in texts:
        if texts.count(text) > 1:
            raise ConfigError(f"{where}: {json.loads(text)} is given twice")
    return Choices(given)


def _range(low: str, high: str, how: str | None, where: str) -> Range:
    ends = [_number(low, where), _number(high, where)]
    if not all(isinstance(end, int) for end in ends):
        ends = [float(end) for end in ends]
    least, most = ends
    if least >= most:
        raise ConfigError(f"{where}: {low} is not less than {high}, so nothing is between them")
    if how is None:
        return Range(least, most)
    if how == "log":
        if least <= 0:
            raise ConfigError(f"{where}: {low} has no logarithm; begin above 0")
        return Range(least, most, log=True)
    step = _number(how, where)
    whole = isinstance(least, int)
    if not 0 < step <= most - least or (whole and not isinstance(step, int)):
        kind = "a whole number" if whole else "a number"
        raise ConfigError(
            f"{where}: the step {how} is not {kind} above 0 and at most {most - least:g}"
        )
    # The last value is one that the steps reach.
    reached = least + step * int((most - least) / step + 1e-9)
    # 3 · 0.1 is 0.30000000000000004.
    return Range(least, reached if whole else float(f"{reached:.12g}"), step=step)


def _number(text: str, where: str) -> float:
    value, _ = parse_yaml(text, where, NumberLoader)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) == float("inf"):
        raise ConfigError(f"{where}: {text!r} is not a number; {_FORMS}")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
