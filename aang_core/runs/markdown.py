"""Markdown of model cards: tables and escaped text."""

from collections.abc import Sequence
from typing import Any

from aang_core.printable import printable


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells already are Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def plain(text: Any) -> str:
    """Escape Markdown and HTML: labels come from untrusted files."""
    shown = printable(" ".join(str(text).split()))
    escaped = "".join(f"\\{c}" if c in "\\`*_[]#|" else c for c in shown)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
