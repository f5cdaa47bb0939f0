"""A finished run as a few lines of HTML, which notebooks show."""

from collections.abc import Sequence
from html import escape

from aang.runs.records import Records
from aang.runs.schema import PlainFineTuning, Result, Scores
from aang_core.training.evaluation import shown_score

_OBJECTIVES = 5
"""Objectives that are listed, those with the largest weights at the end."""


def run_html(title: str, outcome: Result, records: Records) -> str:
    """The scores on dev and test, and the objectives with the largest weights.

    Args:
        title: a line about the run.
        outcome: the content of ``result.json``.
        records: what the run recorded.
    """
    chosen = outcome.metric

    def shown(of: Scores | PlainFineTuning) -> list[str]:
        return [shown_score(of.dev, chosen.name), shown_score(of.test, chosen.name)]

    scores = [
        ["this run", chosen.shown("dev"), chosen.shown("test")],
        [outcome.baseline, *shown(outcome.majority)],
    ]
    if plain := outcome.fine_tuning:
        scores.insert(1, ["plain fine-tuning", *shown(plain)])
    weights = records.mean_weights(0.75, 1.0)
    heaviest = sorted(weights, key=lambda name: -weights[name])[:_OBJECTIVES]
    parts = [f"<p>{escape(title)}</p>", _table([chosen.name, "dev", "test"], scores)]
    if heaviest:
        head = ["objective", "weight in the last quarter"]
        parts.append(_table(head, [[name, f"{weights[name]:.4f}"] for name in heaviest]))
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
