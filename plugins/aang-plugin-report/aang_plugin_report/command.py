"""``aang report``: a page or pictures of what runs did."""

from pathlib import Path

import click

from aang_core.cli import echo

PAGE = "report.html"
"""The page of a run, in its folder."""


@click.command(short_help="Write a page that shows what runs did.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=f"the page; default: {PAGE} in the run folder, or here for several runs",
)
@click.option(
    "--figures", type=click.Path(path_type=Path), help="write PNG and SVG files into this folder"
)
def report(runs: tuple[Path, ...], out: Path | None, figures: Path | None) -> None:
    """Write one HTML page, which needs no network, about one run or several together.

    The folder of a comparison stands for all of its finished runs, and its table is drawn, too.
    """
    # Imported here, because plug-ins are loaded for every command.
    from aang import Run

    from aang_plugin_report.comparison import TABLE, bars_of, runs_of
    from aang_plugin_report.page import write_figures, write_page

    compared = [folder for folder in runs if (folder / TABLE).is_file()]
    several = len(compared) > 1
    results = [
        chart
        for number, folder in enumerate(compared)
        for chart in bars_of(folder, number if several else None)
    ]
    folders = [
        run for folder in runs for run in (runs_of(folder) if folder in compared else [folder])
    ]
    opened = [Run.open(run) for run in folders]
    if figures is not None:
        written = write_figures(opened, figures, results)
        echo(f"{len(written)} figures are in {figures}.")
    if figures is None or out is not None:
        page = out or (runs[0] / PAGE if len(runs) == 1 else Path(PAGE))
        write_page(opened, page, results)
        echo(f"The report is in {page}.")
