"""The layout of S2ORC's static releases, such as 20200705v1.

Two directories of JSON Lines, joined on ``paper_id``: ``metadata`` (title, abstract, fields of
study, all of which may be null) and ``pdf_parses`` (paragraphs of abstract and body). Lo et al.,
S2ORC: The Semantic Scholar Open Research Corpus, ACL 2020, and the release's own README.
"""

from collections.abc import Sequence

from aang_plugin_s2orc.paper import Note, Paper, Record, paper_key, text_or_none, year_or_none


def read_pdf_parse(record: Record, note: Note) -> Paper | None:
    """Read ``{"paper_id", "abstract": [{"text"}], "body_text": [{"text"}], ...}``."""
    key = paper_key(record["paper_id"], note)
    if key is None:
        return None
    return Paper(
        key,
        full_text=True,
        abstract=_paragraphs(record.get("abstract"), note),
        body=_paragraphs(record["body_text"], note),
    )


def read_metadata(record: Record, note: Note) -> Paper | None:
    """Read ``{"paper_id", "title", "abstract", "year", "mag_field_of_study", ...}``."""
    key = paper_key(record["paper_id"], note)
    if key is None:
        return None
    abstract = text_or_none(record.get("abstract"))
    fields = record.get("mag_field_of_study")
    return Paper(
        key,
        full_text=False,
        described=True,
        fields=tuple(map(str, fields)) if isinstance(fields, list) else (),
        year=year_or_none(record.get("year")),
        title=text_or_none(record.get("title")),
        abstract=() if abstract is None else (abstract,),
    )


def _paragraphs(value: object, note: Note) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list):
        note("paragraphs that are not a list, skipped")
        return ()
    texts = [text_or_none(item.get("text")) if isinstance(item, dict) else None for item in value]
    for text in texts:
        if text is None:
            note("paragraph without text, skipped")
    return [text for text in texts if text is not None]
