"""Words of a text with their tags: from lists, from spans, and back to spans."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from aang.task_types.cells import Cell, class_name, text_of
from aang.task_types.written_lists import list_in
from aang_core.objectives.stages.data import ReadReport, TaggedWord

OUTSIDE = "O"
"""The tag of a word that is part of nothing."""

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

_PREFIXED = re.compile(r"[BIESLU]-.+")


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


def are_entities(tags: Sequence[str]) -> bool:
    """Whether tags mark spans: each is ``O`` or has a prefix such as ``B-`` or ``I-``."""
    marks = [tag for tag in tags if tag != OUTSIDE]
    return bool(marks) and all(map(is_entity, marks))


def is_entity(tag: str) -> bool:
    """Whether a tag has a prefix that makes it part of a span."""
    return _PREFIXED.fullmatch(tag) is not None


def tokens_in(text: str) -> list[object] | None:
    """The tokens of a list that is written as text; None for tokens with spaces between them.

    A text may begin with a bracket, so only a list of quoted tokens, or an empty one, is taken for
    one.
    """
    start = text.lstrip()[:2]
    return list_in(text) if start in ("['", '["', "[]") else None


def words_of_lists(
    tokens: Cell, tags: Cell, report: ReadReport
) -> tuple[str, tuple[TaggedWord, ...]]:
    """The text of a list of tokens, with a space between them, and its words.

    Raises:
        DataError: there are not as many tags as tokens, or one of them is not text.
    """
    words = [_token(tokens, value, report) for value in _listed(tokens)]
    names = [class_name(tags.inner(value), report) for value in _listed(tags)]
    if len(words) != len(names):
        raise tags.fault(
            f"holds {len(names)} tags, and column {tokens.column!r} {len(words)} tokens. Every "
            "token needs one tag."
        )
    if not words:
        raise tokens.fault("holds no token. Fill it in or remove the example.")
    found, start = [], 0
    for word, name in zip(words, names, strict=True):
        found.append(TaggedWord(start, start + len(word), name))
        start += len(word) + 1
    return " ".join(words), tuple(found)


def _listed(cell: Cell) -> Sequence[object]:
    if isinstance(cell.value, list):
        return cell.value
    if isinstance(cell.value, str):
        return cell.value.split()
    raise cell.fault(
        f"holds {cell.value!r:.60}, which is not a list. Token labels are a list of tags and a "
        "list of tokens, or a text and a list of spans such as "
        '{"start": 3, "end": 8, "label": "PER"}.'
    )


def _token(cell: Cell, value: object, report: ReadReport) -> str:
    token = text_of(cell.inner(value)).strip()
    if " " in token:
        # A space separates tokens in the text.
        report.add("token with a space in it, which became one that does not break", cell.where)
    return token.replace(" ", "\u00a0")


def words_of_spans(
    text: Cell, spans: Cell, report: ReadReport
) -> tuple[str, tuple[TaggedWord, ...]]:
    """A text and its words, those within spans tagged ``B-`` and ``I-``.

    A span that begins or ends within a word is extended to the whole word. A word belongs to the
    first of the spans that share it, and a span that is left without a word is left out.

    Raises:
        DataError: a span is not one, leads out of the text, or overlaps another.
    """
    whole = text_of(text)
    found = sorted(_span(spans, value, len(whole), report) for value in _listed(spans))
    for (_, end, _), (start, _, _) in pairwise(found):
        if start < end:
            raise spans.fault(
                f"holds spans that overlap at character {start}. A word has one tag: leave the "
                "inner or the outer span out."
            )
    words = []
    tagged = set()
    before = None  # the span of the word before
    for first, last in word_places(whole):
        inside = next((span for span in found if span[0] < last and first < span[1]), None)
        tag = OUTSIDE
        if inside is not None:
            start, end, name = inside
            tag = f"{'I' if inside == before else 'B'}-{name}"
            if first < start or last > end:
                report.add("span that ends within a word, extended to the whole of it", spans.where)
        words.append(TaggedWord(first, last, tag))
        before = inside
        tagged.add(inside)
    for _ in set(found) - tagged:
        report.add("span without a word of its own, left out", spans.where)
    return whole, tuple(words)


def _span(cell: Cell, value: Any, length: int, report: ReadReport) -> tuple[int, int, str]:
    match value:
        case {"start": int(start), "end": int(end), "label": name}:
            pass
        case [int(start), int(end), name]:
            pass
        case _:
            raise cell.fault(
                f"holds {value!r:.60}, which is not a span. Write "
                '{"start": 3, "end": 8, "label": "PER"} or [3, 8, "PER"].'
            )
    if not 0 <= start < end <= length:
        raise cell.fault(
            f"holds a span from {start} to {end}, and the text has {length} characters. The end "
            "is the place after the last character."
        )
    return start, end, class_name(cell.inner(name), report)
