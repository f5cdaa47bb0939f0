"""The charts of a comparison, from the table that ``aang compare`` leaves in its folder."""

from pathlib import Path
from statistics import fmean, stdev

from pydantic import BaseModel, TypeAdapter, ValidationError

from aang_core import DataError
from aang_plugin_report.charts import Bars

TABLE = "table.json"
"""The table in a folder, which marks it as a comparison's."""


class Row(BaseModel):
    """What a chart needs from a row of the table: a method on a task, with its scores by seed."""

    task: str
    method: str
    metric: str
    dev: list[float]
    test: list[float]
    on_dev: bool
    permutation: float | None

    @property
    def scores(self) -> list[float]:
        return [100 * score for score in (self.dev if self.on_dev else self.test or self.dev)]


def bars_of(folder: Path, number: int | None = None) -> list[Bars]:
    """A chart for each task of a comparison: its methods by mean score (AANG, Figure 3).

    Args:
        folder: the folder of the comparison.
        number: its number among several, whose tasks may have the same names.

    Raises:
        DataError: the table is damaged, or of a search.
    """
    path = folder / TABLE
    try:
        rows = TypeAdapter(list[Row]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{path}: is damaged, or of aang tune, whose runs are reported by their own folders; "
            "if it is of aang compare, call that again, which writes it anew"
        ) from error
    scored = [row for row in rows if row.scores]
    of, place = ("", "") if number is None else (f"{number}-", f"{folder}, ")
    return [
        _bars(f"{of}{task}", f"{place}{task}", [row for row in scored if row.task == task])
        for task in dict.fromkeys(row.task for row in scored)
    ]


def runs_of(folder: Path) -> list[Path]:
    """The folders of the finished runs of a comparison.

    Raises:
        DataError: no run has finished.
    """
    found = sorted(path.parent for path in folder.glob("runs/**/result.json"))
    if not found:
        raise DataError(f"{folder}: no run of this comparison has finished")
    return found


def _bars(key: str, title: str, rows: list[Row]) -> Bars:
    means = [fmean(row.scores) for row in rows]
    spread = [stdev(row.scores) if len(row.scores) > 1 else 0.0 for row in rows]
    labels = []
    for row, mean, half in zip(rows, means, spread, strict=True):
        p = "" if row.permutation is None else f" ({row.permutation:.3f})"
        labels.append(f"{row.method} {mean:.2f} ± {half:.2f}{p}")
    tested = any(row.permutation is not None for row in rows)
    part = "dev" if rows[0].on_dev or not rows[0].test else "test"
    best = max(zip(means, labels, strict=True))[1]
    return Bars(
        key=f"results-{key}",
        title=f"{title}: mean ± standard deviation",
        x_label=f"{part} {rows[0].metric}{' (in brackets: p of the permutation test)' * tested}",
        labels=labels,
        groups=[(part, means)],
        spread=spread,
        alt=f"The best mean is that of {best}.",
    )
