"""The texts of any source, again and again."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example


class RepeatedTexts:
    """The texts of any source, pass after pass.

    Its position is the number of the pass and of the texts read in it. Restoring one reads those
    texts again.

    Args:
        read: reads the source from its beginning, in the same order each time; receives the number
            of the pass, from 1.

    Examples:
        >>> from aang_core import Example
        >>> from aang.corpora import RepeatedTexts
        >>> texts = RepeatedTexts(lambda number: [Example("one"), Example("two")])
        >>> [next(texts).text for _ in range(3)]
        ['one', 'two', 'one']
        >>> texts.state_dict()
        {'pass': 2, 'given': 1}
    """

    def __init__(self, read: Callable[[int], Iterable[Example]]) -> None:
        self._read = read
        self._texts: Iterator[Example] = iter(())
        self._pass = 0
        self._given = 0

    def __next__(self) -> Example:
        text = next(self._texts, None)
        if text is None:
            if self._pass and not self._given:
                raise DataError("the text source became empty while it was being read")
            self._pass += 1
            self._given = 0
            self._texts = iter(self._read(self._pass))
            text = next(self._texts, None)
        if text is None:
            raise DataError("there is no text to read")
        self._given += 1
        return text

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`aang_core.objectives.stages.TextStream.state_dict`."""
        return {"pass": self._pass, "given": self._given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See :meth:`aang_core.objectives.stages.TextStream.load_state_dict`."""
        self._pass, self._given = state["pass"], state["given"]
        texts: Iterator[Example] = iter(self._read(self._pass)) if self._pass else iter(())
        self._texts = islice(texts, self._given, None)
