"""The tables and curves that a comparison writes into its folder."""

from collections.abc import Sequence
from pathlib import Path

from aang_core.storage import write_file, writing
from aang_plugin_compare.curves import Point, as_csv, as_json
from aang_plugin_compare.tables import FORMATS, Entry, table

_ENDINGS = ("txt", "md", "tex", "json")


def write_outcome(
    root: Path,
    entries: Sequence[Entry],
    points: Sequence[Point],
    baseline: str | None,
    *,
    difference: bool,
) -> None:
    """Write the table in all formats, and the curves as CSV and JSON.

    Args:
        root: the folder of the comparison.
        entries: rows of the table.
        points: points of the curves.
        baseline: the method that the others are tested against.
        difference: whether the table has a column of differences to the baseline.

    Raises:
        StorageError: a file cannot be written.
    """
    texts = {
        f"table.{ending}": table(entries, form, baseline, difference=difference)
        for form, ending in zip(FORMATS, _ENDINGS, strict=True)
    }
    for name, text in {
        **texts,
        "curves.csv": as_csv(points),
        "curves.json": as_json(points),
    }.items():
        with writing(root / name):
            write_file(root / name, text)
