"""What is remembered about each paper, in about 16 bytes."""

from array import array
from hashlib import blake2b

CHOSEN = 1
"""Its metadata is of the wanted field and years."""
IN_LANGUAGE = 2
OTHER_LANGUAGE = 4
FULL_TEXT = 8
"""Its full text was yielded."""
ABSTRACT_IN_FULL_TEXT = 16
ABSTRACT = 32
"""The abstract of its metadata was yielded."""
TITLE = 64
SEEN = 1
"""The only mark if texts are remembered instead of papers."""

_MARKS = 127
_PARTS = 256
_SMALLEST = 16


class Marks:
    """Marks on papers, by their ids.

    A paper is a 64-bit word: 57 bits of a hash of its id, and seven marks. Words are kept in tables
    with open addressing that are at most three quarters full: 10.7 to 21.3 bytes per paper. Many
    small tables need less memory while one of them grows than a single large one would.

    Two ids may have the same hash. Among 81 million papers, all of S2ORC, the chance of any
    collision is 2%; the two papers then share their marks.
    """

    def __init__(self) -> None:
        self._tables = [array("Q", bytes(8 * _SMALLEST)) for _ in range(_PARTS)]
        self._papers = [0] * _PARTS

    def __len__(self) -> int:
        """Number of papers with a mark."""
        return sum(self._papers)

    @property
    def nbytes(self) -> int:
        """Memory of all tables."""
        return sum(table.itemsize * len(table) for table in self._tables)

    def of(self, key: str) -> int:
        """The sum of a paper's marks; 0 if it has none."""
        word = _word(key)
        table = self._tables[word >> 56]
        return table[_place(table, word)] & _MARKS

    def add(self, key: str, mark: int) -> bool:
        """Mark a paper and return whether it did not have the mark before."""
        word = _word(key)
        part = word >> 56
        table = self._tables[part]
        place = _place(table, word)
        found = table[place]
        if found & mark == mark:
            return False
        table[place] = (found or word) | mark
        if not found:
            self._papers[part] += 1
            if 4 * self._papers[part] > 3 * len(table):
                self._tables[part] = _doubled(table)
        return True


def _word(key: str) -> int:
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) & ~_MARKS


def _place(table: "array[int]", word: int) -> int:
    """Index of the word in its table, or of the free place where it belongs."""
    last = len(table) - 1
    place = (word >> 7) & last
    while (found := table[place]) and found & ~_MARKS != word:
        place = (place + 1) & last
    return place


def _doubled(table: "array[int]") -> "array[int]":
    larger = array("Q", bytes(16 * len(table)))
    for word in table:
        if word:
            larger[_place(larger, word & ~_MARKS)] = word
    return larger
