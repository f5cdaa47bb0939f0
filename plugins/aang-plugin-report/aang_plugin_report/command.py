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
    """Write one HTML page, which needs no network, about one run or several together."""
    # Imported here, because plug-ins are loaded for every command.
    from aang import Run

    from aang_plugin_report.page import write_figures, write_page

    opened = [Run.open(run) for run in runs]
    if figures is not None:
        written = write_figures(opened, figures)
        echo(f"{len(written)} figures are in {figures}.")
    if figures is None or out is not None:
        page = out or (runs[0] / PAGE if len(runs) == 1 else Path(PAGE))
        write_page(opened, page)
        echo(f"The report is in {page}.")
