"""Charts as pictures."""

from pathlib import Path

import pytest
from aang_plugin_report.charts import Bars
from aang_plugin_report.drawing import draw_picture

LONG = "task/random-factorized-with-a-name-of-its-own/bidirectional/denoise"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["task/mask/denoise", "two  words"], ["task/mask/denoise", "two words"]),
        (
            [LONG, LONG.replace("denoise", "end-task"), f"other-{LONG}", "x" * 61],
            [
                "task/random-factorized-with-…f-its-own/bidirectional/denoise",
                "task/random-factorized-with-…-its-own/bidirectional/end-task",
                "other-task/random-factorized…f-its-own/bidirectional/denoise",
                f"{'x' * 28}…{'x' * 31}",
            ],
        ),
    ],
)
def test_long_names_keep_both_ends(tmp_path: Path, names: list[str], shown: list[str]) -> None:
    """Names of objectives often begin alike and end alike, and still are different names."""
    bars = Bars("key", "A title", "weight", names, [("mean", [0.5] * len(names))], "In words.")
    draw_picture(bars, tmp_path / "bars.svg")
    drawn = (tmp_path / "bars.svg").read_text(encoding="utf-8")
    for name in shown:
        # The letters are shapes; what they say is a comment beside them.
        assert f"<!-- {name} -->" in drawn
