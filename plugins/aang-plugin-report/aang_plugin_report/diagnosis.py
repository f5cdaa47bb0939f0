"""The figure of a diagnosis: distance and cosine of objectives to the end task."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aang_core import ConfigError
from aang_core.storage import whole_file
from aang_plugin_report.drawing import plain, plain_names, save_picture

if TYPE_CHECKING:
    from aang_plugin_diagnose import Diagnosis

STATIC = (".png", ".svg", ".pdf")
TITLE = "Objectives seen from the end task"
X, Y = "distance Δ̂ to the end task's gradient", "cosine with the dev gradient"


def prepared(path: Path) -> "Callable[[Diagnosis], None]":
    """Prepare to draw a diagnosis.

    Args:
        path: the file to write; interactive for .html, otherwise a picture.

    Returns:
        A function that writes the figure of a diagnosis; it raises ConfigError if the file cannot
        be written.

    Raises:
        ConfigError: the extension is not .html, .png, .svg or .pdf.
    """
    if path.suffix not in (".html", *STATIC):
        raise ConfigError(f"--plot {path}: give a file that ends in .html, {', '.join(STATIC)}")
    return partial(_draw, path)


def _draw(path: Path, diagnosis: "Diagnosis") -> None:
    try:
        if path.suffix == ".html":
            _draw_page(diagnosis, path)
        else:
            _draw_picture(diagnosis, path)
    except OSError as error:
        raise ConfigError(f"--plot {path}: cannot be written: {error.strerror or error}") from error


def _groups(diagnosis: "Diagnosis") -> dict[str, list[int]]:
    """Indices of the objectives by output, the last part of the name."""
    groups: dict[str, list[int]] = {}
    for i, objective in enumerate(diagnosis.objectives):
        groups.setdefault(objective.name.rpartition("/")[2], []).append(i)
    return groups


def _draw_page(diagnosis: "Diagnosis", path: Path) -> None:
    # Imported here, because plotly takes a second.
    from plotly import graph_objects

    objectives = diagnosis.objectives
    figure = graph_objects.Figure()
    for output, places in _groups(diagnosis).items():
        chosen = [objectives[i] for i in places]
        figure.add_scatter(
            x=[o.distance.mean for o in chosen],
            y=[o.cosine.mean for o in chosen],
            error_x={"array": [o.distance.std or 0.0 for o in chosen], "thickness": 1},
            error_y={"array": [o.cosine.std or 0.0 for o in chosen], "thickness": 1},
            text=plain_names(o.name for o in chosen),
            name=plain(output),
            mode="markers",
            hovertemplate="%{text}<br>Δ̂ %{x:.3g}<br>cosine %{y:.3f}<extra></extra>",
        )
    figure.update_layout(title=TITLE, xaxis_title=X, yaxis_title=Y, template="plotly_white")
    with whole_file(path) as draft:
        figure.write_html(draft, include_plotlyjs=True, full_html=True)


def _draw_picture(diagnosis: "Diagnosis", path: Path) -> None:
    from matplotlib.figure import Figure

    objectives = diagnosis.objectives
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for output, places in _groups(diagnosis).items():
        chosen = [objectives[i] for i in places]
        axes.errorbar(
            [o.distance.mean for o in chosen],
            [o.cosine.mean for o in chosen],
            xerr=[o.distance.std or 0.0 for o in chosen],
            yerr=[o.cosine.std or 0.0 for o in chosen],
            fmt="o",
            elinewidth=0.6,
            label=output,
        )
    axes.axhline(0, color="grey", linewidth=0.6)
    axes.set(title=TITLE, xlabel=X, ylabel=Y)
    axes.legend(title="output")
    save_picture(figure, path)
