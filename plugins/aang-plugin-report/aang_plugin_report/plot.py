"""One chart of a run, for notebooks."""

from typing import Any

from aang import Run

from aang_core import ConfigError
from aang_plugin_report.drawing import plotly_figure
from aang_plugin_report.figures import charts_of


def plot(run: Run, what: str) -> Any:
    """Draw a chart of a run.

    Args:
        run: the run.
        what: key of the chart.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        ConfigError: the run has no such chart; the message lists those that it has.
    """
    charts = {chart.key: chart for chart in charts_of(run)}
    if what not in charts:
        raise ConfigError(f"{what!r} is no chart of this run; it has {', '.join(charts)}")
    return plotly_figure(charts[what]).update_layout(title=charts[what].title)
