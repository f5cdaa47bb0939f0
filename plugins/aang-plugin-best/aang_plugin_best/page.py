"""The page of a search: ``report.html`` in its folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aang.task_types.metrics import shown_score
from aang_plugin_report.charts import Chart, Heat, Intervals, Lines, Series, confusion
from aang_plugin_report.page import Page, Table

from aang_plugin_best.next_steps import DOUBTFUL, LABEL_NEXT
from aang_plugin_best.verdict import words

PAGE = "report.html"
MOST_SHOWN = 300
"""Characters of a text."""


def write_page(verdict: Mapping[str, Any], path: Path) -> None:
    """Write the page.

    Args:
        verdict: the content of ``best.json``.
        path: the file to write.

    Raises:
        StorageError: it cannot be written.
    """
    metric = verdict["metric"]
    facts = {
        "chosen": verdict["chosen"],
        metric: shown_score(verdict["score"], metric, verdict["interval"]),
        "labelled rows": str(verdict["labelled"]),
        "calibration error": f"{verdict['calibration_error']:.3f}",
    }
    for part, of in verdict["parts"].items():
        facts[f"{part} {metric}"] = shown_score(of["scores"][metric], metric, of["interval"])
        if new := of.get("new"):
            shown = shown_score(new["scores"][metric], metric, new["interval"])
            facts[f"{part} {metric}, new texts"] = shown
    # What was not tried has a table of its own.
    lines = [line.strip() for line in words({**verdict, "not_tried": {}})]
    Page("The best way found", facts, list(_charts(verdict)), _tables(verdict), lines).write(path)


def _charts(verdict: Mapping[str, Any]) -> Iterator[Chart]:
    yield _board(verdict)
    if verdict["confusion"]:
        yield _confusion(verdict)
    if verdict["learning_curve"] is not None:
        yield _learning_curve(verdict)
    yield _answered(verdict)


def _board(verdict: Mapping[str, Any]) -> Intervals:
    board, metric = verdict["board"], verdict["metric"]
    said = [
        f"{of['name']} {shown_score(of['score'], metric, of['interval'])}, best or level in "
        f"{of['chance']:.0%} of samples"
        for of in board
    ]
    return Intervals(
        key="board",
        title=f"Candidates by {metric}, with 95% intervals",
        x_label=metric,
        labels=[of["name"] for of in board],
        values=[100 * of["score"] for of in board],
        ends=[(100 * of["interval"][0], 100 * of["interval"][1]) for of in board],
        alt=f"Over {board[0]['rows']} rows that a model had not seen: {'; '.join(said)}.",
    )


def _confusion(verdict: Mapping[str, Any]) -> Heat:
    what = "rows are classified correctly by a model that had not seen them"
    return confusion(
        "confusion", "Confusion of classes", verdict["classes"], verdict["confusion"], what
    )


def _learning_curve(verdict: Mapping[str, Any]) -> Lines:
    curve, metric = verdict["learning_curve"], verdict["metric"]
    points, more = curve["points"], curve["more"]
    low, high = (100 * end for end in more["interval"])
    return Lines(
        key="learning-curve",
        title="Learning curve",
        x_label="training rows",
        y_label=metric,
        series=[
            Series(
                f"{curve['candidate']}, {metric} with 95% intervals",
                [point["rows"] for point in points],
                [100 * point["score"] for point in points],
                intervals=[
                    (100 * point["interval"][0], 100 * point["interval"][1]) for point in points
                ],
            )
        ],
        alt=f"Each point is over the same {curve['predicted']} rows, from {points[0]['rows']} to "
        f"{points[-1]['rows']} training rows. {more['labels']} more labels would bring "
        f"{low:+.1f} to {high:+.1f} points (95% interval): a line in the logarithm of the rows, "
        "and how far the points lie off it.",
    )


def _answered(verdict: Mapping[str, Any]) -> Lines:
    points, wanted = verdict["answered"], verdict.get("answer_at")
    shares = [100 * point["answered"] for point in points]
    half = min(points, key=lambda point: abs(point["answered"] - 0.5))
    mark = None
    if wanted is not None and wanted["threshold"] is not None:
        mark = 100 * wanted["answered"], f"accuracy {wanted['accuracy']:g}"
    return Lines(
        key="answered",
        title="Accuracy by share of texts answered",
        x_label="% of texts answered, the surest first",
        y_label="accuracy",
        series=[Series("accuracy", shares, [100 * point["accuracy"] for point in points])],
        mark=mark,
        alt=f"With all texts answered, {100 * points[-1]['accuracy']:.1f}% of the answers are "
        f"right; with the surest half, {100 * half['accuracy']:.1f}%.",
    )


def _tables(verdict: Mapping[str, Any]) -> list[Table]:
    classes = [
        [name, *(100 * of[rate] for rate in ("precision", "recall", "f1")), of["examples"]]
        for name, of in verdict["by_class"].items()
    ]
    tables = [Table("Classes", ["class", "precision", "recall", "f1", "examples"], classes)]
    for key, file, title in (
        ("doubtful", DOUBTFUL, "The most doubtful labels"),
        ("label_next", LABEL_NEXT, "Texts to label next"),
    ):
        if records := verdict.get(key, {}).get("first"):
            rows = [[_shown(name, cell) for name, cell in record.items()] for record in records]
            tables.append(Table(f"{title}; {file} has more", list(records[0]), rows))
    not_tried = [list(pair) for pair in verdict["not_tried"].items()]
    tables.append(Table("Not tried, or not to the end", ["candidate", "why"], not_tried))
    return [table for table in tables if table.rows]


def _shown(name: str, cell: Any) -> Any:
    """A cell readable at a glance: long texts are cut, and a place shows only the file's name."""
    if not isinstance(cell, str):
        return cell
    cell = Path(cell).name if name == "place" else cell
    return f"{cell[:MOST_SHOWN]}…" if len(cell) > MOST_SHOWN else cell
