"""What a run is about to do, as lines of text or as JSON."""

import json

from aang.runs.summary import Summary, in_words
from aang_core.cli.output import echo, folded, one_line


def announce(summary: Summary) -> None:
    """Print the summary to standard error, before training begins."""
    for line in _lines(summary, err=True):
        echo(line, err=True)


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """Print the summary to standard output, as the result of the command."""
    if as_json:
        echo(json.dumps(summary.document(), indent=2))
        return
    for line in _lines(summary):
        echo(line)


def _lines(summary: Summary, *, err: bool = False) -> list[str]:
    lines = in_words(summary)
    width = max(len(name) for name, _ in lines)
    return [
        folded(f"{name:<{width}}  {one_line(words)}", indent=width + 2, err=err)
        for name, words in lines
    ]
