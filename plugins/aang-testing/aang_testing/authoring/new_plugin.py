"""Writes a new plug-in: a project file, a module with one primitive, and its test."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template

from aang_core.errors import ConfigError
from aang_core.plugins.hooks import PLUGIN_API
from aang_core.plugins.primitive import Stage

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


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
    path = files("aang_testing.authoring") / "templates" / f"{template}.txt"
    return Template(path.read_text(encoding="utf-8")).substitute(values)
