"""Drawing charts, for plotly.js in a page and as pictures for papers."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aang_core.cli import printable
from aang_core.storage import whole_file
from aang_plugin_report.charts import Bars, Chart, Heat, Intervals, Lines, Points, Series

ROW = 26
"""Height in pixels of a row of a chart with names on its left side."""

_COLOURS = 10
"""Colours that plotly and matplotlib give to curves, before they begin again."""

_DASHES = (("solid", "-"), ("dash", "--"), ("dashdot", "-."), ("dot", ":"))
"""How curves are drawn, in plotly's words and matplotlib's; each in all colours."""

_STANDOFF = 12
"""Pixels between the title of an axis and its labels."""


def plotly_json(chart: Chart) -> dict[str, Any]:
    """``data`` and ``layout`` for plotly.js; the page adds the colours of its theme."""
    drawn: dict[str, Any] = json.loads(plotly_figure(chart).update_layout(template=None).to_json())
    return drawn


def plotly_figure(chart: Chart) -> Any:
    """The chart as a ``plotly.graph_objects.Figure``."""
    from plotly import graph_objects

    figure = graph_objects.Figure()
    match chart:
        case Lines():
            for i, series in enumerate(chart.series):
                dash, _ = _dash(i)
                figure.add_scatter(
                    x=list(series.x),
                    y=list(series.y),
                    name=plain(series.name),
                    mode=_mode(series),
                    line={"dash": dash},
                    error_y=_error(series.bars),
                    hovertemplate="%{y:.3f}",
                    marker={"size": 11, "symbol": "star"} if series.points else None,
                )
            if chart.mark is not None:
                place, word = chart.mark
                figure.add_vline(x=place, line_dash="dot", line_width=1, annotation_text=word)
            figure.update_layout(height=340, hovermode="x unified")
            figure.update_xaxes(unifiedhovertitle={"text": f"{chart.x_label} %{{x}}"})
            if chart.y_range is not None:
                figure.update_yaxes(range=list(chart.y_range))
            if chart.x_log:
                figure.update_xaxes(type="log", tickvals=_places(chart))
        case Points():
            for name, points in chart.groups.items():
                figure.add_scatter(
                    x=[point.x[0] for point in points],
                    y=[point.y[0] for point in points],
                    error_x={"array": [point.x[1] for point in points], "thickness": 1},
                    error_y={"array": [point.y[1] for point in points], "thickness": 1},
                    text=plain_names(point.name for point in points),
                    name=plain(name),
                    mode="markers",
                    hovertemplate="%{text}<br>%{x:.3g}, %{y:.3f}<extra></extra>",
                )
        case Bars():
            for name, values in chart.groups:
                figure.add_bar(
                    y=plain_names(chart.labels),
                    x=list(values),
                    name=plain(name),
                    orientation="h",
                    error_x={"array": list(chart.spread)} if chart.spread else None,
                    hovertemplate="%{x:.3f}",
                )
            figure.update_layout(
                height=120 + ROW * chart.rows, barmode="group", hovermode="y unified"
            )
        case Intervals():
            figure.add_scatter(
                y=plain_names(chart.labels),
                x=list(chart.values),
                error_x=_error(chart.bars),
                customdata=[list(of) for of in chart.ends],
                mode="markers",
                marker={"size": 11},
                hovertemplate="%{y}: %{x:.2f}, %{customdata[0]:.2f} to %{customdata[1]:.2f}"
                "<extra></extra>",
            )
            figure.update_layout(height=120 + ROW * chart.rows)
        case Heat():
            counts = all(isinstance(value, int) for row in chart.z for value in row)
            figure.add_heatmap(
                x=plain_names(chart.x),
                y=plain_names(chart.y),
                z=[list(row) for row in chart.z],
                colorscale="RdBu" if chart.diverging else "Blues",
                zmid=0 if chart.diverging else None,
                zmin=None if chart.diverging else 0,
                zmax=None if chart.diverging else chart.largest,
                # Without decimals if every value is a count.
                hovertemplate=f"{chart.y_label} %{{y}}<br>{chart.x_label} %{{x}}: ".lstrip()
                + ("%{z}" if counts else "%{z:.3f}")
                + "<extra></extra>",
                texttemplate="%{z}" if chart.written else None,
                hoverongaps=False,
            )
            figure.update_layout(height=150 + ROW * chart.rows)
            figure.update_xaxes(type="category")
    figure.update_layout(
        xaxis_title=chart.x_label,
        yaxis_title=chart.y_label,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    figure.update_xaxes(automargin=True, title_standoff=_STANDOFF)
    figure.update_yaxes(automargin=True, title_standoff=_STANDOFF)
    if chart.rows:
        # Every row shows its name; by default plotly leaves out some on a narrow screen.
        figure.update_yaxes(autorange="reversed", type="category", dtick=1)
    return figure


def _places(chart: Lines) -> list[float]:
    """Where the curves have points."""
    return sorted({x for series in chart.series for x in series.x})


def _mode(series: Series) -> str:
    """How plotly draws a curve; a single point needs a marker."""
    if series.points:
        return "markers"
    return "lines+markers" if series.intervals or len(series.x) == 1 else "lines"


def _error(bars: tuple[list[float], list[float]] | None) -> dict[str, Any] | None:
    return None if bars is None else {"arrayminus": bars[0], "array": bars[1], "thickness": 2}


def _dash(number: int) -> tuple[str, str]:
    """The dash of the curve of this number, so that curves of one colour look different."""
    return _DASHES[number // _COLOURS % len(_DASHES)]


def plain(name: str) -> str:
    """Escape what plotly acts upon: tags and entities of HTML, and formulas between dollars."""
    shown = printable(name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("$", "&#36;")


def plain_names(names: Iterable[str]) -> list[str]:
    """Every name as :func:`plain` escapes it."""
    return [plain(name) for name in names]


def draw_picture(chart: Chart, path: Path) -> None:
    """Draw a chart into a file.

    Args:
        chart: the chart.
        path: a .png, .svg or .pdf file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # A name between dollar signs is not a formula.
    with rc_context({"text.parse_math": False}):
        height = max(4.0, 1.5 + 0.25 * chart.rows)
        figure = Figure(figsize=(8, height), layout="constrained")
        _draw(chart, figure)
        with whole_file(path) as draft:
            figure.savefig(draft, dpi=150, format=path.suffix[1:])


def _draw(chart: Chart, figure: Any) -> None:
    axes = figure.add_subplot()
    match chart:
        case Lines():
            for i, series in enumerate(chart.series):
                _, style = _dash(i)
                if series.points:
                    style = "*"
                elif len(series.x) == 1:
                    style = "o"
                label = _legend_name(series.name)
                axes.errorbar(series.x, series.y, series.bars, fmt=style, label=label)
            if chart.mark is not None:
                place, word = chart.mark
                axes.axvline(place, linestyle=":", color="grey", label=word)
            if chart.y_range is not None:
                axes.set_ylim(*chart.y_range)
            if chart.x_log:
                axes.set_xscale("log")
                # Matplotlib's own labels are formulas, such as 10³.
                axes.minorticks_off()
                axes.set_xticks(_places(chart), [f"{place:,}" for place in _places(chart)])
            axes.legend(fontsize="small")
        case Points():
            for name, points in chart.groups.items():
                x, xerr = zip(*(point.x for point in points), strict=True)
                y, yerr = zip(*(point.y for point in points), strict=True)
                label = _legend_name(name)
                axes.errorbar(x, y, yerr, xerr, fmt="o", elinewidth=0.6, label=label)
            axes.axhline(0, color="grey", linewidth=0.6)
            axes.legend(fontsize="small")
        case Bars():
            height = 0.8 / len(chart.groups)
            for i, (name, values) in enumerate(chart.groups):
                places = [place + i * height for place in range(len(chart.labels))]
                axes.barh(
                    *(places, list(values), height),
                    xerr=list(chart.spread) or None,
                    capsize=3,
                    label=_legend_name(name),
                )
            middle = height * (len(chart.groups) - 1) / 2
            axes.set_yticks([p + middle for p in range(len(chart.labels))], _short(chart.labels))
            axes.invert_yaxis()
            if len(chart.groups) > 1:
                axes.legend(fontsize="small")
        case Intervals():
            rows = range(len(chart.labels))
            axes.errorbar(chart.values, rows, xerr=chart.bars, fmt="o")
            axes.set_yticks(rows, _short(chart.labels))
            axes.invert_yaxis()
        case Heat():
            cells = [[float("nan") if v is None else v for v in row] for row in chart.z]
            image = axes.imshow(
                cells,
                aspect="auto",
                cmap="RdBu" if chart.diverging else "Blues",
                vmin=-chart.largest if chart.diverging else 0,
                vmax=chart.largest,
            )
            figure.colorbar(image)
            if chart.written:
                _write_values(axes, chart)
            axes.set_yticks(range(len(chart.y)), _short(chart.y))
            every = max(1, len(chart.x) // 12)
            ticks = range(0, len(chart.x), every)
            axes.set_xticks(ticks, [_short([chart.x[i]])[0] for i in ticks], rotation=45)
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)


def _write_values(axes: Any, chart: Heat) -> None:
    for row, values in enumerate(chart.z):
        for column, value in enumerate(values):
            if value is not None:
                # White text on dark cells.
                colour = "white" if abs(value) > chart.largest / 2 else "black"
                axes.text(column, row, f"{value:g}", ha="center", va="center", color=colour)


def _short(labels: Any) -> list[str]:
    return [_shortened(" ".join(printable(str(label)).split())) for label in labels]


def _legend_name(name: str) -> str:
    (shown,) = _short([name])
    # Matplotlib leaves names that begin with an underscore out of a legend.
    return f" {shown}" if shown.startswith("_") else shown


def _shortened(name: str) -> str:
    """At most 60 characters, with both ends, because names of objectives differ at either."""
    return name if len(name) <= 60 else f"{name[:28]}…{name[-31:]}"
