"""A corpus that is read over and over and can be continued from any place."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from aang_core import DataError, Example

Records = Iterator[tuple[int, Sequence[str]]]
"""Numbers, in ascending order, and texts of the records of a file."""


@dataclass
class _Lane:
    """A file that is being read; its records up to number ``done`` are used up."""

    name: str
    done: int
    records: Records


class EndlessTexts:
    """The texts of files, one record of each of ``at_once`` files in turn, pass after pass.

    Its state is a name and a number for each file that is being read, so files may be added or
    removed before it continues, and all of them may be moved.

    Args:
        files: the files, and a name for each that does not depend on where they are.
        read: returns the records of a file after a given record number.
        nothing: returns the error to raise if a pass yields no text.
        at_once: number of files read at a time.
    """

    def __init__(
        self,
        files: Mapping[Path, str],
        read: Callable[[Path, int], Records],
        nothing: Callable[[], DataError],
        at_once: int,
    ) -> None:
        self._files = {files[path]: path for path in sorted(files, key=str)}
        self._read = read
        self._nothing = nothing
        self._at_once = at_once
        self._lanes: deque[_Lane] = deque()
        self._waiting = iter(self._files)
        self._opened = ""
        self._found = False
        self._record: tuple[_Lane, int] | None = None
        self._texts: Sequence[str] = ()
        self._given = 0

    def __next__(self) -> Example:
        while self._given == len(self._texts):
            self._next_record()
        self._given += 1
        return Example(self._texts[self._given - 1])

    def state_dict(self) -> dict[str, Any]:
        """See `TextStream.state_dict`."""
        lanes = [*self._lanes] if self._record is None else [self._record[0], *self._lanes]
        return {
            "lanes": [[lane.name, lane.done] for lane in lanes],
            "given": self._given,
            "opened": self._opened,
            "found": self._found,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `TextStream.load_state_dict`.

        Raises:
            DataError: it is not the state of such a stream.
        """
        lanes, given = state["lanes"], state["given"]
        types = {"opened": str, "found": bool, "given": int}
        if (
            len(lanes) > self._at_once
            or any(type(state[name]) is not kind for name, kind in types.items())
            or not all(type(done) is int and 0 <= done < 2**63 for _, done in lanes)
            or given < 0
        ):
            raise DataError("the saved place in the texts is damaged")
        self._lanes = deque(self._lane(name, done) for name, done in lanes)
        self._opened = state["opened"]
        self._waiting = iter(self._after(self._opened))
        self._found = state["found"]
        self._record, self._texts, self._given = None, (), 0
        if given:
            self._next_record()
            self._given = min(given, len(self._texts))

    def _lane(self, name: str, done: int) -> _Lane:
        # A file may have gone since; and an untrusted state must not choose what is read.
        path = self._files.get(name)
        return _Lane(name, done, iter(()) if path is None else self._read(path, done))

    def _after(self, opened: str) -> list[str]:
        """The names of the files that come after one that may have gone."""
        names = list(self._files)
        if opened in self._files:
            return names[names.index(opened) + 1 :]
        return [name for name in names if name > opened]

    def _next_record(self) -> None:
        if self._record is not None:
            lane, done = self._record
            self._lanes.append(_Lane(lane.name, done, lane.records))
            self._record = None
        for name in islice(self._waiting, self._at_once - len(self._lanes)):
            self._lanes.append(self._lane(name, 0))
            self._opened = name
        self._texts, self._given = (), 0
        if not self._lanes:
            if not self._found:
                raise self._nothing()
            self._found = False
            self._waiting, self._opened = iter(self._files), ""
            return
        lane = self._lanes.popleft()
        record = next(lane.records, None)
        if record is not None:
            number, self._texts = record
            self._record = lane, number
            self._found |= bool(self._texts)
