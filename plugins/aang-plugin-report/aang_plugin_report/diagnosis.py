"""The figure of a diagnosis: distance and cosine of objectives to the end task."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aang_core import ConfigError
from aang_core.storage import whole_file
from aang_plugin_report.charts import Point, Points
from aang_plugin_report.drawing import draw_picture, plotly_figure

if TYPE_CHECKING:
    from aang_plugin_diagnose import Diagnosis

STATIC = (".png", ".svg", ".pdf")


def prepared(path: Path) -> "Callable[[Diagnosis], None]":
    """Prepare to draw a diagnosis.

    Args:
        path: the file to write; interactive for .html, otherwise a picture.

    Returns:
        A function that writes the figure of a diagnosis; it raises ConfigError if the file cannot
        be written.

    Raises:
        ConfigError: the extension is not .html, .png, .svg or .pdf, or there is no such folder.
    """
    if not path.parent.is_dir():
        raise ConfigError(f"--plot {path}: there is no folder {path.parent}; make it first")
    if path.suffix not in (".html", *STATIC):
        raise ConfigError(f"--plot {path}: give a file that ends in .html, {', '.join(STATIC)}")
    return partial(_draw, path)


def _draw(path: Path, diagnosis: "Diagnosis") -> None:
    chart = _chart(diagnosis)
    try:
        if path.suffix != ".html":
            draw_picture(chart, path)
            return
        figure = plotly_figure(chart).update_layout(title=chart.title, template="plotly_white")
        with whole_file(path) as draft:
            figure.write_html(draft, include_plotlyjs=True, full_html=True)
    except OSError as error:
        raise ConfigError(f"--plot {path}: cannot be written: {error.strerror or error}") from error


def _chart(diagnosis: "Diagnosis") -> Points:
    """The objectives, in a group for each output, the last part of their names."""
    groups: dict[str, list[Point]] = {}
    for o in diagnosis.objectives:
        x, y = ((of.mean, of.std or 0.0) for of in (o.distance, o.cosine))
        groups.setdefault(o.name.rpartition("/")[2], []).append(Point(o.name, x, y))
    return Points(
        key="diagnosis",
        title="Objectives seen from the end task",
        x_label="distance Δ̂ to the end task's gradient",
        y_label="cosine with the dev gradient",
        alt="Objectives by distance and cosine.",
        groups=groups,
    )
