"""Where the words of a text are, in scripts with spaces between words and without."""

import re

import regex

_SCRIPTS = (
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}"
    r"\p{Script=Khmer}\p{Script=Myanmar}"
)
"""Scripts without spaces between words; :data:`_UNSPACED` adds letters that two of them share."""

# Digits are left out: a number is one word.
_UNSPACED = rf"[[[{_SCRIPTS}]&&[\p{{L}}\p{{Nl}}\p{{M}}]]\u3006\u303c\u30fc\uff70\uff9e\uff9f]"
# Joiners, and letters by category that are part of the character before them (Unicode, UAX #29).
_MARK = r"[\p{M}\u200c\u200d\u0e33\u0eb3\uff9e\uff9f]"
_LETTER = rf"[[\p{{L}}\p{{N}}_]--{_UNSPACED}]"
_RUN = rf"{_LETTER}+(?:{_MARK}+{_LETTER}*)*"
_OTHER = r"[^\p{L}\p{N}_\s\x1c-\x1f]"

_ALONE = regex.compile(_UNSPACED, regex.V1)
_RUNS = regex.compile(rf"{_UNSPACED}{_MARK}*|{_RUN}", regex.V1)
_WORDS = regex.compile(rf"{_UNSPACED}{_MARK}*|{_RUN}(?:[-'’.]{_RUN})*|{_OTHER}{_MARK}*", regex.V1)
# The same for texts in ASCII, four times as fast.
_ASCII_RUNS = re.compile(r"\w+")
_ASCII_WORDS = re.compile(r"\w+(?:[-'.]\w+)*|[^\w\s]")


def word_places(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end; a punctuation mark is a word of its own.

    In scripts without spaces between words (Han, Hiragana, Katakana, Thai, Lao, Khmer and Myanmar)
    each character is a word. Combining marks belong to the character before them.

    Examples:
        >>> from aang.task_types.words import word_places
        >>> word_places("Ada's 北京")
        [(0, 5), (6, 7), (7, 8)]
    """
    words = _ASCII_WORDS if text.isascii() else _WORDS
    return [match.span() for match in words.finditer(text)]


def letter_runs(text: str) -> list[str]:
    """The runs of letters, digits, underscores and combining marks in a text.

    In scripts without spaces between words each character is a run of its own, as it is a word in
    :func:`word_places`.

    Examples:
        >>> from aang.corpora import letter_runs
        >>> letter_runs("Ada's 北京")
        ['Ada', 's', '北', '京']
    """
    runs: list[str] = (_ASCII_RUNS if text.isascii() else _RUNS).findall(text)
    return runs


def is_unspaced(character: str) -> bool:
    """Whether a character is a letter of a script without spaces between words."""
    return _ALONE.match(character) is not None
