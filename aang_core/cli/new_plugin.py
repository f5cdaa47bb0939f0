"""``aang new-plugin``: a plug-in to start from."""

from pathlib import Path
from typing import cast, get_args

import click

from aang_core.cli.output import echo
from aang_core.plugins.primitive import Stage


@click.command(short_help="Write a new plug-in, complete with its tests.")
@click.argument("name")
@click.option(
    "--stage",
    type=click.Choice(get_args(Stage)),
    default="transform",
    show_default=True,
    help="stage of its first primitive",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    show_default=True,
    help="where to create it",
)
def new_plugin(name: str, stage: str, folder: Path) -> None:
    """Write the plug-in aang-plugin-NAME: a project, a module with one primitive, and a test."""
    from aang_core.authoring.new_plugin import write_plugin

    written = write_plugin(name, cast(Stage, stage), folder)
    place = written[0].parent
    for file in written:
        echo(f"wrote {file}")
    echo(
        f"\nInstall and test it, then make it your own:\n\n"
        f"    pip install -e '{place}[test]'\n"
        f"    python -m pytest {place}\n"
        f"    aang check-plugin {place}"
    )
