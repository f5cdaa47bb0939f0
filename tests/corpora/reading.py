"""What a labelled file holds, for tests that look at its examples alone."""

from pathlib import Path

from aang_core import Example, ReadReport
from tests.support.data import Columns, read_rows


def read_labelled(
    path: Path,
    *,
    text: str = "text",
    text_pair: str | None = None,
    label: str = "label",
    report: ReadReport | None = None,
) -> list[Example]:
    """The examples of a file, in file order."""
    report = ReadReport() if report is None else report
    return list(read_rows(path, Columns(text, text_pair, label), report).examples)
