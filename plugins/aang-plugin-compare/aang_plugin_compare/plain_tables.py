"""Tables as text and Markdown, and scores in them."""

import statistics
from collections.abc import Sequence


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False
) -> str:
    """A table as aligned text, or as Markdown; it ends with a line break."""
    if markdown:
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join(lines) + "\n"


def score_text(
    scores: Sequence[float], plus: str = "±", intervals: Sequence[Sequence[float]] = ()
) -> str:
    """The mean of scores, times 100, with its standard deviation if there are several.

    Args:
        scores: scores between 0 and 1; a dash stands for none.
        plus: the sign before the standard deviation.
        intervals: the interval of each score; the means of their ends follow in brackets.
    """
    if not scores:
        return "–"
    spread = f" {plus} {100 * statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    ends = "–".join(f"{100 * statistics.mean(end):.1f}" for end in zip(*intervals, strict=True))
    return f"{100 * statistics.mean(scores):.2f}{spread}" + (f" ({ends})" if ends else "")
