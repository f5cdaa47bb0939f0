"""Markdown of model cards: tables and escaped text."""

import re
from collections.abc import Sequence
from typing import Any

from aang_core.printable import printable


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells already are Markdown."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    # A bar ends a cell even in code.
    cells = ([re.sub(r"(?<!\\)\|", r"\|", cell) for cell in line] for line in lines)
    return "".join("| " + " | ".join(line) + " |\n" for line in cells)


def plain(text: Any) -> str:
    """Escape Markdown and HTML: labels come from untrusted files.

    What acts without any markup cannot be escaped, since it is looked for when the escapes are
    gone: addresses, mentions, formulas and names of emoji. A text with such a thing becomes code.
    """
    shown = printable(" ".join(str(text).split()))
    if _ACTING.search(shown):
        return _code(shown)
    escaped = "".join(f"\\{c}" if c in "\\`*_[]#|" else c for c in shown)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_ACTING = re.compile(r"://|\bwww\.|@|\$|:[\w+-]+:", re.IGNORECASE)


def _code(text: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
