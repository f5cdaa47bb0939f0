"""Finding texts that overlap with texts that must not be trained on."""

from collections.abc import Iterable

from aang.corpora import letter_runs

WORDS = 8
"""Two texts hardly ever share this many words in a row by chance."""


class Overlap:
    """Finds texts that share ``words`` words in a row with any of the ``held_out`` ones.

    Words are runs of letters, digits and underscores with their combining marks, and single
    characters of scripts without spaces between words, such as Chinese, Japanese and Thai. Case and
    everything between words are ignored. A held-out text with fewer words overlaps only with a text
    of exactly these words.

    It needs memory in proportion to the held-out texts, and one look-up for each word of a text.

    Args:
        held_out: texts that must not be trained on.
        words: length of a shared run.
    """

    def __init__(self, held_out: Iterable[str], words: int = WORDS) -> None:
        self._words = words
        self._grams: set[str] = set()
        self._short: set[str] = set()
        for text in held_out:
            found = words_of(text)
            if len(found) < words:
                self._short.add(" ".join(found))
            else:
                self._grams.update(self._grams_of(found))

    def __call__(self, text: str) -> bool:
        """Whether ``text`` overlaps."""
        found = words_of(text)
        if len(found) < self._words:
            return bool(found) and " ".join(found) in self._short
        return not self._grams.isdisjoint(self._grams_of(found))

    def _grams_of(self, words: list[str]) -> Iterable[str]:
        n = self._words
        # All runs of n words: n lists, each starting one word later, zipped.
        return map(" ".join, zip(*(words[i:] for i in range(n)), strict=False))


def words_of(text: str) -> list[str]:
    """The words of a text, for comparison."""
    return letter_runs(text.casefold())
