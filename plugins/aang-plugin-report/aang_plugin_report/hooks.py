"""What this plug-in registers, and what it does after a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core import ConfigError, RegisterCommand, hookimpl

if TYPE_CHECKING:
    from aang import Run
    from aang_plugin_diagnose import Diagnosis


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register ``aang report``."""
    register(
        "report", "Write a page that shows what runs did.", "aang_plugin_report.command:report"
    )


@hookimpl
def aang_after_training(run: "Run") -> None:
    """Write ``report.html`` into the run's folder."""
    from aang_plugin_report.command import PAGE
    from aang_plugin_report.page import write_page

    write_page([run], run.folder / PAGE)


@hookimpl
def aang_plot_run(run: "Run", what: str) -> Any:
    """Draw a chart of the page as a plotly figure."""
    from aang_plugin_report.drawing import plotly_figure
    from aang_plugin_report.figures import charts_of

    charts = {chart.key: chart for chart in charts_of(run)}
    if what not in charts:
        raise ConfigError(f"{what!r} is no chart of this run; it has {', '.join(charts)}")
    return plotly_figure(charts[what]).update_layout(title=charts[what].title)


@hookimpl
def aang_plot_diagnosis(path: Path) -> "Callable[[Diagnosis], None]":
    """Draw objectives by their distance to the end task and their cosine with the dev gradient."""
    from aang_plugin_report.diagnosis import prepared

    return prepared(path)
