"""``aang new-plugin``: a plug-in to start from, with one primitive and its test."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import get_args

import click

from aang_core.cli.output import echo, note
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from aang_core.plugins.hooks import PLUGIN_API
from aang_core.plugins.primitive import Stage
from aang_testing.names import taken_plugin, taken_primitive

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


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


def write_plugin(name: str, stage: Stage, parent: Path) -> list[Path]:
    """Write the plug-in ``aang-plugin-NAME`` into a new folder of that name in ``parent``.

    Its tests pass from the start. Change its primitive to make it your own.

    Args:
        name: with or without the prefix ``aang-plugin-``.
        stage: the stage of its primitive, or ``weighter``.
        parent: the folder to create it in.

    Returns:
        The files.

    Raises:
        ConfigError: the name is invalid, or the folder exists already.
    """
    short = name.removeprefix("aang-plugin-")
    if not _NAME.fullmatch(short):
        raise ConfigError(
            f"{name}: is not a valid plug-in name; use lower-case letters, digits and hyphens, "
            "such as span-mask"
        )
    folder = parent / f"aang-plugin-{short}"
    if folder.exists():
        raise ConfigError(f"{folder}: exists already; give another name or remove it")
    module = f"aang_plugin_{short.replace('-', '_')}"
    values = {
        "name": short,
        "module": module,
        "cls": _class_name(short, stage),
        "core": version("aang-core"),
        "api": str(PLUGIN_API),
        "stage": stage,
    }
    contents = {
        "pyproject.toml": _filled("pyproject.toml", values),
        f"{module}.py": _filled(f"{stage}.py", values),
        f"test_{module.removeprefix('aang_plugin_')}.py": _filled("test.py", values),
    }
    folder.mkdir(parents=True)
    for file, text in contents.items():
        (folder / file).write_text(text, encoding="utf-8")
    return [folder / file for file in contents]


def _class_name(short: str, stage: Stage) -> str:
    name = "".join(part.capitalize() for part in short.split("-"))
    # None, True and False cannot be the names of classes.
    return name + stage.capitalize() if iskeyword(name) else name


def _filled(template: str, values: Mapping[str, str]) -> str:
    path = files("aang_testing") / "templates" / f"{template}.txt"
    return Template(path.read_text(encoding="utf-8")).substitute(values)
