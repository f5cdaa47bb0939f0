"""Where the words of a text are, in scripts with spaces between words and without."""

import re
import unicodedata
from functools import cache

_UNSPACED = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003fffd"
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Katakana
    "\U0001aff0-\U0001b16f"  # further kana
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe"  # Myanmar
    "\uaa60-\uaa76\uaa7a-\uaa7f"
)
"""Letters of scripts without spaces between words, as ranges of a regular expression.

Their digits are left out: a number is one word.
"""

_JOINERS = "\u200c\u200d"
_SPACING_LETTERS = "\u0e33\u0eb3\uff9e\uff9f"
"""Letters by category that are part of the character before them (Unicode, UAX #29)."""

_FURTHER = re.compile("[\u0300-\u1fff\u200c\u200d\u20d0-\u20ff\u2c00-\U0010ffff]")
"""What may be a combining mark, a joiner or a letter of a script without spaces.

Texts without any, such as English ones, take plain patterns, which are ten times faster.
"""


def word_places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end; a punctuation mark is a word of its own.

    In scripts without spaces between words (Han, Hiragana, Katakana, Thai, Lao, Khmer and Myanmar)
    each character is a word. Combining marks belong to the character before them.

    Examples:
        >>> from aang.task_types.words import word_places
        >>> word_places("Ada's 北京")
        [(0, 5), (6, 7), (7, 8)]
    """
    return [match.span() for match in _words(_has_further(text)).finditer(text)]


def letter_runs(text: str) -> list[str]:
    """The runs of letters, digits, underscores and combining marks in a text.

    In scripts without spaces between words each character is a run of its own, as it is a word in
    :func:`word_places`.

    Examples:
        >>> from aang.corpora import letter_runs
        >>> letter_runs("Ada's 北京")
        ['Ada', 's', '北', '京']
    """
    return _runs(_has_further(text)).findall(text)


def is_unspaced(character: str) -> bool:
    """Whether a character is a letter of a script without spaces between words."""
    return _unspaced().match(character) is not None


@cache
def _words(further: bool) -> re.Pattern[str]:
    alone, run, marks = _parts(further)
    return re.compile(rf"{alone}{run}(?:[-'’.]{run})*|[^\w\s]{marks}")


@cache
def _runs(further: bool) -> re.Pattern[str]:
    alone, run, _ = _parts(further)
    return re.compile(f"{alone}{run}")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def _parts(further: bool) -> tuple[str, str, str]:
    """Patterns of a character that is a word, of a run of other letters, and of marks."""
    if not further:
        return "", r"\w+", ""
    # re has no name for combining marks, and \w leaves them out.
    combining = (chr(i) for i in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)))
    found = "".join(one for one in combining if unicodedata.category(one).startswith("M"))
    mark = f"[{found}{_JOINERS}{_SPACING_LETTERS}]"
    letter = rf"[^\W{_UNSPACED}]"
    return f"[{_UNSPACED}]{mark}*|", f"{letter}+(?:{mark}+{letter}*)*", f"{mark}*"


def _has_further(text: str) -> bool:
    return _FURTHER.search(text) is not None
