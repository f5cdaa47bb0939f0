"""``aang new-plugin``: a plug-in to start from."""

from pathlib import Path
from typing import get_args

import click

from aang_core.cli.output import echo, note
from aang_core.plugins import Plugins
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
@click.pass_obj
def new_plugin(plugins: Plugins, name: str, stage: Stage, folder: Path) -> None:
    """Write the plug-in aang-plugin-NAME: a project, a module with one primitive, and a test."""
    from aang_testing.authoring.names import taken_plugin, taken_primitive
    from aang_testing.authoring.new_plugin import write_plugin

    written = write_plugin(name, stage, folder)
    place = written[0].parent
    for file in written:
        echo(f"wrote {file}")
    short = place.name.removeprefix("aang-plugin-")
    for taken in (
        taken_plugin(place.name, short, plugins),
        taken_primitive(stage, short, plugins.registry, place.name),
    ):
        if taken:
            note(taken)
    echo(
        f"\nInstall and test it, then make it your own:\n\n"
        f"    pip install -e '{place}[test]'\n"
        f"    python -m pytest {place}\n"
        f"    aang check-plugin {place}"
    )
