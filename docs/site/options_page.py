"""Writes docs/options.md from the options of ``aang train``: python docs/site/options_page.py."""

import re
from pathlib import Path

import click
from aang.cli.train import train
from aang.config import schema_of
from aang.config.schema import SECTIONS

from aang_core import load_plugins
from aang_core.cli.app import aang

PAGE = Path(__file__).parents[1] / "options.md"

INTRODUCTION = """\
<!-- Written by docs/site/options_page.py. -->

# Options of `aang train`

Set any option on the command line or, under its name without the leading dashes, in a
configuration file (`aang train options.yaml`) or in Python; the command line wins. What can be
repeated is a list there. Without data, the demo is trained, with `--steps 300 --lr 3e-4
--head-lr 3e-3`. A dash means that an option has no fixed default. `--set NAME.OPTION=VALUE` sets
options of primitives and weighters, which the [plug-ins' READMEs](../plugins) list.

Gradient signals are measured only for weighters that ask for them, such as `factored`; the default
recipe, `contrast`, uses none. [Concepts](concepts.md) explains them, and [scaling](scaling.md) says
what saves time and memory.
"""


def options_page() -> str:
    """The page: a table for each section of the schema, each plug-in, and the command itself."""
    schema = schema_of(load_plugins(environ={}).registry)
    titles = {n: f"Options of {o.origin.distribution}" for n, o in schema.plugin_options.items()}
    for section in SECTIONS:
        titles |= dict.fromkeys(section.model_fields, str(section.__doc__).rstrip("."))
    tables: dict[str, list[str]] = {}
    with train.make_context("train", [], parent=click.Context(aang), resilient_parsing=True) as ctx:
        for option in train.get_params(ctx):
            if isinstance(option, click.Option) and not option.is_eager:
                field = schema.model_fields.get(str(option.name))
                title = titles.get(str(option.name), "On the command line only")
                rows = tables.setdefault(title, [])
                rows.append(_row(option, None if field is None else field.default))
    parts = [INTRODUCTION]
    for title, rows in tables.items():
        parts += [f"## {title}\n", "| option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _row(option: click.Option, default: object) -> str:
    shown = "–" if default in (None, (), {}) else f"`{default}`"
    text = re.sub(r" +\[default: .*\]", "", option.help or "")
    text = re.sub(r"(?<![\w/])--[a-z][a-z-]*", r"`\g<0>`", text)
    return f"| `{option.opts[0]}` | {shown} | {text} |"


if __name__ == "__main__":
    PAGE.write_text(options_page(), encoding="utf-8")
