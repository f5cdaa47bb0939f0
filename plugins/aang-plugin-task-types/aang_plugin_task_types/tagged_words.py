"""Words of a text with their tags: from lists of tokens, and from spans."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from aang.task_types import Cell, class_name, list_in, plain, text_of, word_places

from aang_core import ReadReport, TaggedWord

OUTSIDE = "O"
"""The tag of a word that is part of nothing."""


def tokens_in(text: object) -> list[Any] | None:
    """The tokens of a list, which may be written as text; None for any other text.

    A text may begin with a bracket, so text counts as a list only if its tokens are quoted or it is
    empty.
    """
    text = plain(text)
    if not isinstance(text, str):
        return text if isinstance(text, list) else None
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
