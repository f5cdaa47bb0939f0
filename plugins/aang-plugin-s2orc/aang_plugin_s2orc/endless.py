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
    """A file that is being read and whose records up to number ``done`` are used up."""

    name: str
    done: int
    records: Records


class EndlessTexts:
    """The texts of files, one record of each of ``at_once`` files in turn, pass after pass.

    Its state is a name and a number for each file that is being read, so files may be added or
    removed before it continues, and all of them may be moved.

    Args:
        files: the files, and what each is called wherever they are.
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
        self._files = sorted(files, key=str)
        self._names = files
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
            DataError: it is not a state of such a stream.
        """
        lanes = [self._saved_lane(lane) for lane in state["lanes"]]
        types = {"opened": str, "found": bool, "given": int}
        if len(lanes) > self._at_once or any(type(state[n]) is not t for n, t in types.items()):
            raise DataError("the saved place in the texts is damaged")
        if state["given"] < 0:
            raise DataError("the saved place in a text is damaged: it is before its beginning")
        self._lanes = deque(lanes)
        self._opened = state["opened"]
        self._waiting = iter(self._after(self._opened))
        self._found = state["found"]
        self._record, self._texts, self._given = None, (), 0
        if state["given"]:
            self._next_record()
            self._given = min(state["given"], len(self._texts))

    def _saved_lane(self, saved: Any) -> _Lane:
        name, done = saved
        if type(done) is not int or not 0 <= done < 2**63:
            raise DataError(f"the saved place in {name} is damaged: it is {done!r}")
        # A file may have gone since; and the state may be a stranger's, who must not say what is
        # read.
        path = self._called(name)
        return _Lane(name, done, iter(()) if path is None else self._read(path, done))

    def _called(self, name: str) -> Path | None:
        return next((path for path in self._files if self._names[path] == name), None)

    def _after(self, name: str) -> list[Path]:
        """The files that come after one that may have gone."""
        there = self._called(name)
        if there is not None:
            return self._files[self._files.index(there) + 1 :]
        return [path for path in self._files if self._names[path] > name]

    def _next_record(self) -> None:
        if self._record is not None:
            lane, done = self._record
            lane.done = done
            self._lanes.append(lane)
            self._record = None
        for path in islice(self._waiting, self._at_once - len(self._lanes)):
            self._lanes.append(_Lane(self._names[path], 0, self._read(path, 0)))
            self._opened = self._names[path]
        self._texts, self._given = (), 0
        if not self._lanes:
            self._begin_again()
            return
        lane = self._lanes.popleft()
        record = next(lane.records, None)
        if record is not None:
            number, self._texts = record
            self._record = lane, number
            self._found |= bool(self._texts)

    def _begin_again(self) -> None:
        if not self._found:
            raise self._nothing()
        self._found = False
        self._waiting, self._opened = iter(self._files), ""
