"""Messages in the words of a Python program: options as keywords."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from aang.config import TrainConfig
from aang_core.errors import AangError

_COMMAND = r"aang [a-z-]+[^.;,]*"
_OF_PRIMITIVE = r"--set (?P<of>[\w+-]+)\.(?P<option>\w+)(?:=(?P<value>[^\s:;,]+))?"
# "--steps 'x': …" is the option with its value.
_OPTION = r"--(?P<name>[a-z][a-z-]*)(?: (?=[^\s:]+: ))?"
_WRITTEN = re.compile(f"{_COMMAND}|{_OF_PRIMITIVE}|{_OPTION}")


def in_python(message: str, names: Collection[str] = TrainConfig.model_fields) -> str:
    """The message with keywords in place of options; commands for a terminal stay.

    Args:
        message: a message in the words of the command line.
        names: the names of all options.

    Examples:
        >>> in_python("--eval-every 0: should be greater. Name the column with --label.")
        'eval_every=0: should be greater. Name the column with label=.'
        >>> in_python("--set factored.n=0: too few; see aang train --help")
        "set={'factored': {'n': 0}}: too few; see aang train --help"
    """

    def keyword(match: re.Match[str]) -> str:
        if match["of"]:
            return f"set={{{match['of']!r}: {{{match['option']!r}: {match['value'] or '…'}}}}}"
        name = (match["name"] or "").replace("-", "_")
        return f"{name}=" if name in names else match[0]

    return _WRITTEN.sub(keyword, message)


@contextmanager
def errors_in_python(names: Collection[str]) -> Iterator[None]:
    """Reword the message of an error that AANG raises on purpose; ``names`` are all options."""
    try:
        yield
    except AangError as error:
        error.args = (in_python(str(error), names), *error.args[1:])
        raise
