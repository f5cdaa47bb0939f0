"""Records of every layout as papers; the layout is known by a record's keys, not by its file.

========================  ===========================================================
``paper_id``              S2ORC's static releases, such as 20200705v1. Two directories of JSON
                          Lines: ``metadata`` (title, abstract, fields of study, all of which may be
                          null) and ``pdf_parses`` (paragraphs of abstract and body). Lo et al.,
                          S2ORC: The Semantic Scholar Open Research Corpus, ACL 2020.
``corpusid``              The Semantic Scholar bulk data sets, which S2ORC is part of since 2023.
                          Full text is one string with annotations beside it, each a string of JSON
                          (or null) that lists spans of characters. ``s2orc`` keeps both under
                          ``content``, ``s2orc_v2`` under ``body``; ``papers`` and ``abstracts``
                          hold the metadata. Kinney et al., The Semantic Scholar Open Data
                          Platform, 2023.
``text``, perhaps ``id``  peS2o, Dolma and similar data sets: paragraphs with blank lines between
                          them. Soldaini and Lo, peS2o (Pretraining Efficiently on S2ORC) Dataset,
                          2023.
========================  ===========================================================
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

Note = Callable[[str], None]
"""Counts one fault of the record that is being read."""

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True, slots=True)
class Paper:
    """One record of a paper, of any layout.

    Attributes:
        key: id of the paper, which joins metadata and full text; None if the layout has none.
        full_text: whether the record holds the paper's text instead of metadata.
        key_repeats: whether another paper may have the same key.
        described: whether the record is of the kind that has fields, year and title; full texts
            are not, nor are records with only an abstract.
        fields: fields of study, if known.
        year: year of publication, if known.
        title: title, if known.
        abstract: paragraphs of the abstract in reading order, unchanged.
        body: paragraphs of the body in reading order, unchanged.
    """

    key: str | None
    full_text: bool
    key_repeats: bool = False
    described: bool = False
    fields: tuple[str, ...] = ()
    year: int | None = None
    title: str | None = None
    abstract: Sequence[str] = ()
    body: Sequence[str] = ()


Reader = Callable[[Record, Note], Paper | None]


def reader_of(record: Record) -> Reader | None:
    """The function that converts such a record to a paper; None if its layout is unknown."""
    describes = "title" in record or "abstract" in record
    if "paper_id" in record:
        if "body_text" in record:
            return _parse_of_2020
        return _metadata_of_2020 if describes else None
    if "corpusid" in record:
        if "content" in record or "body" in record:
            return _annotated_text
        if describes:
            return _metadata
    return _plain if "text" in record else None


def _parse_of_2020(record: Record, note: Note) -> Paper | None:
    """``{"paper_id", "abstract": [{"text"}], "body_text": [{"text"}], ...}``."""
    key = _key(record["paper_id"], note)
    if key is None:
        return None
    abstract, body = (_texts_in(record.get(name), note) for name in ("abstract", "body_text"))
    return Paper(key, full_text=True, abstract=abstract, body=body)


def _texts_in(value: object, note: Note) -> Sequence[str]:
    if value is not None and not isinstance(value, list):
        note("paragraphs that are not a list, skipped")
        return ()
    texts = []
    for item in value or ():
        text = _text(item.get("text")) if isinstance(item, dict) else None
        if text is None:
            note("paragraph without text, skipped")
        else:
            texts.append(text)
    return texts


def _metadata_of_2020(record: Record, note: Note) -> Paper | None:
    """``{"paper_id", "title", "abstract", "year", "mag_field_of_study", ...}``."""
    fields = record.get("mag_field_of_study")
    names = tuple(map(str, fields)) if isinstance(fields, list) else ()
    return _described(record, record["paper_id"], names, note, described=True)


def _metadata(record: Record, note: Note) -> Paper | None:
    """``{"corpusid", "title", "year", "s2fieldsofstudy"}`` or ``{"corpusid", "abstract"}``."""
    entries = record.get("s2fieldsofstudy")
    found = entries if isinstance(entries, list) else ()
    names = (entry.get("category") for entry in found if isinstance(entry, dict))
    # Every classifier that found a field lists it once.
    fields = tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
    # The data set `abstracts` has no titles, not even null.
    return _described(record, record["corpusid"], fields, note, described="title" in record)


def _described(
    record: Record, identity: object, fields: tuple[str, ...], note: Note, *, described: bool
) -> Paper | None:
    key = _key(identity, note)
    if key is None:
        return None
    year, abstract = record.get("year"), _text(record.get("abstract"))
    if isinstance(year, str) and year.isascii() and year.isdigit():
        year = int(year[:5])
    known = isinstance(year, int) and not isinstance(year, bool) and 0 < year < 10_000
    return Paper(
        key,
        full_text=False,
        described=described,
        fields=fields,
        year=year if known else None,
        title=_text(record.get("title")),
        abstract=() if abstract is None else (abstract,),
    )


def _annotated_text(record: Record, note: Note) -> Paper | None:
    """``{"corpusid", "content": {"text", "annotations": {"paragraph": "[...]"}}, ...}``.

    Paragraphs are taken from the annotations; without any, the text is split at blank lines.
    """
    key = _key(record["corpusid"], note)
    if key is None:
        return None
    content = record.get("content") or record.get("body")
    content = content if isinstance(content, Mapping) else {}
    text, annotations = _text(content.get("text")), content.get("annotations")
    if text is None:
        note("paper without text")
        return Paper(key, full_text=True)
    marked = annotations if isinstance(annotations, Mapping) else {}
    body = _spans(marked.get("paragraph"), len(text), note)
    if not body:
        return Paper(key, full_text=True, body=_paragraphs(text))
    # Some abstracts are also annotated as paragraphs.
    abstract = [
        (first, last)
        for first, last in _spans(marked.get("abstract"), len(text), note)
        if not any(start < last and first < end for start, end in body)
    ]
    return Paper(
        key,
        full_text=True,
        abstract=[text[start:end] for start, end in abstract],
        body=[text[start:end] for start, end in body],
    )


def _spans(annotation: object, length: int, note: Note) -> list[tuple[int, int]]:
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


def _plain(record: Record, note: Note) -> Paper | None:
    """``{"text", "id", ...}``; the paper's id may be missing."""
    key, text = record.get("id"), _text(record["text"])
    if text is None:
        note("paper without text")
    return Paper(
        str(key) if isinstance(key, str | int) else None,
        full_text=True,
        # The ids of many data sets are line numbers, which begin anew in each file.
        key_repeats=True,
        body=_paragraphs(text or ""),
    )


def _paragraphs(text: str) -> Sequence[str]:
    """The parts of a text between blank lines."""
    return [part for part in _BLANK_LINES.split(text) if part.strip()]


def _key(value: object, note: Note) -> str | None:
    """The id of a paper as a string; releases disagree on whether it is a number."""
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
        return str(value)
    note("record without an id, skipped")
    return None


def _text(value: object) -> str | None:
    """``value`` if it is text, None for nulls and everything else."""
    return value if isinstance(value, str) and value.strip() else None
