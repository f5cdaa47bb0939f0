"""The layouts of the Semantic Scholar bulk data sets, which S2ORC is part of since 2023.

Full text is one string with annotations beside it; each annotation is itself a string of JSON (or
null) that lists spans of characters. ``s2orc`` keeps both under ``content``, ``s2orc_v2`` under
``body``. The data sets ``papers`` and ``abstracts`` hold the metadata. All have ``corpusid``.
Kinney et al., The Semantic Scholar Open Data Platform, 2023.
"""

import json
from collections.abc import Mapping, Sequence

from aang_plugin_s2orc.paper import Note, Paper, Record, paper_key, text_or_none, year_or_none
from aang_plugin_s2orc.plain import paragraphs

Span = tuple[int, int]


def read_full_text(record: Record, note: Note) -> Paper | None:
    """Read ``{"corpusid", "content": {"text", "annotations": {"paragraph": "[...]"}}, ...}``.

    Paragraphs are taken from the annotations; without any, the text is split at blank lines.
    """
    key = paper_key(record["corpusid"], note)
    if key is None:
        return None
    content = record.get("content") or record.get("body")
    text = text_or_none(content.get("text")) if isinstance(content, Mapping) else None
    if text is None or not isinstance(content, Mapping):
        note("paper without text")
        return Paper(key, full_text=True)
    annotations = content.get("annotations")
    marked = annotations if isinstance(annotations, Mapping) else {}
    body = _spans(marked.get("paragraph"), len(text), note)
    if not body:
        return Paper(key, full_text=True, body=paragraphs(text))
    # Some abstracts are also annotated as paragraphs.
    abstract = [
        span
        for span in _spans(marked.get("abstract"), len(text), note)
        if not any(start < span[1] and span[0] < end for start, end in body)
    ]
    return Paper(key, full_text=True, abstract=_cut(text, abstract), body=_cut(text, body))


def read_metadata(record: Record, note: Note) -> Paper | None:
    """Read ``{"corpusid", "title", "year", "s2fieldsofstudy"}`` or ``{"corpusid", "abstract"}``."""
    key = paper_key(record["corpusid"], note)
    if key is None:
        return None
    abstract = text_or_none(record.get("abstract"))
    return Paper(
        key,
        full_text=False,
        # The data set `abstracts` has no titles, not even null.
        described="title" in record,
        fields=_fields(record.get("s2fieldsofstudy")),
        year=year_or_none(record.get("year")),
        title=text_or_none(record.get("title")),
        abstract=() if abstract is None else (abstract,),
    )


def _fields(entries: object) -> tuple[str, ...]:
    if not isinstance(entries, list):
        return ()
    names = (entry.get("category") for entry in entries if isinstance(entry, dict))
    # Every classifier that found a field lists it once.
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _spans(annotation: object, length: int, note: Note) -> list[Span]:
    """The spans of one annotation in reading order; spans outside the text are reported."""
    try:
        entries = json.loads(annotation) if isinstance(annotation, str) else annotation
    except (ValueError, RecursionError):
        note("annotation that is not JSON, ignored")
        return []
    spans = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            start, end = int(entry["start"]), int(entry["end"])
        except (TypeError, KeyError, ValueError, OverflowError):
            start, end = 0, -1
        if 0 <= start <= end <= length:
            spans.append((start, end))
        else:
            note("annotation outside the text, ignored")
    return sorted(spans)


def _cut(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]
