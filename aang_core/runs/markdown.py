"""Markdown of model cards: tables, and text in which nothing is Markdown."""

from collections.abc import Sequence
from typing import Any

from aang_core.printable import printable


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; its cells are Markdown already."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def plain(text: Any) -> str:
    """Text in which nothing is Markdown or HTML: labels come from files of strangers."""
    shown = printable(" ".join(str(text).split()))
    escaped = "".join(f"\\{c}" if c in "\\`*_[]#|" else c for c in shown)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
