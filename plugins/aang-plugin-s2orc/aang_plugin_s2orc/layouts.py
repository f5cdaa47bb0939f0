"""Which layout a record has, by its keys and not by the name of its file."""

from collections.abc import Callable

from aang_plugin_s2orc import plain, s2ag, s2orc_2020
from aang_plugin_s2orc.paper import Note, Paper, Record

Reader = Callable[[Record, Note], Paper | None]


def reader_of(record: Record) -> Reader | None:
    """The function that converts such a record to a paper; None if its layout is unknown."""
    if "paper_id" in record:
        if "body_text" in record:
            return s2orc_2020.read_pdf_parse
        return s2orc_2020.read_metadata if _describes(record) else None
    if "corpusid" in record:
        if "content" in record or "body" in record:
            return s2ag.read_full_text
        if _describes(record):
            return s2ag.read_metadata
    return plain.read_plain if "text" in record else None


def _describes(record: Record) -> bool:
    return "title" in record or "abstract" in record
