"""Click options made from a pydantic schema, so that options are described in one place."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aang.config import check_plugin_option, schema_of
from aang.config.schema import COMMON, SECTIONS
from aang.config.values import parse_settings
from aang_core.cli.app import COMPLETIONS, loaded_plugins
from aang_core.cli.rare_options import RareOption, shows_all
from aang_core.errors import ConfigError

Command = Callable[..., Any]


def options_of(
    schema: type[BaseModel], *, skip: Iterable[str] = ()
) -> Callable[[Command], Command]:
    """A decorator that adds an option for each field of ``schema``, in the fields' order.

    An option that is not given is None (an empty tuple if it may be repeated), so that it can be
    told from an option given with its default value.
    """

    def add(command: Command) -> Command:
        for name, field in reversed(schema.model_fields.items()):
            if name not in skip:
                flags, attributes = _option(name, field)
                cls = click.Option if name in COMMON else RareOption
                command = click.option(*flags, cls=cls, **attributes)(command)
        return command

    return add


class TrainingCommand(click.Command):
    """A command that takes the options of a training, those of plug-ins included.

    With ``--help-all`` its help has a section for each section of the schema, one for the options
    of each plug-in, and one for its own.

    Attributes:
        reports: whether it takes options that only say what is reported.
    """

    reports = True

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, then the options of plug-ins."""
        schema = schema_of(loaded_plugins(ctx).registry)
        added: list[click.Parameter] = []
        for name, option in schema.plugin_options.items():
            if self.reports or not option.reporting:
                flags, attributes = _option(name, schema.model_fields[name])
                added.append(RareOption(flags, **attributes))
        return [*super().get_params(ctx), *added]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").removeprefix("no-").replace("-", "_")
            check_plugin_option(name, loaded_plugins(ctx).registry)
            # Click offers names that have little in common, so there is nearly always one.
            error.message += " One of a plug-in in a file needs aang --plugin FILE.py."  # type: ignore[misc]
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not shows_all(ctx):
            super().format_options(ctx, formatter)
            return
        options = schema_of(loaded_plugins(ctx).registry).plugin_options
        titles = {name: f"Options of {o.origin}" for name, o in options.items()}
        for section in SECTIONS:
            titles |= dict.fromkeys(section.model_fields, str(section.__doc__).rstrip("."))
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                rows.setdefault(titles.get(str(parameter.name), "Options"), []).append(record)
        own = rows.pop("Options")
        for title, records in (*rows.items(), ("Options", own)):
            with formatter.section(title):
                formatter.write_dl(records)


def _option(name: str, field: FieldInfo) -> tuple[list[str], Mapping[str, Any]]:
    """The names of an option, and the other arguments that click makes it from."""
    flag = f"--{name.replace('_', '-')}"
    kind = _plain(field.annotation)
    text = _help(field)
    if kind is bool:
        return [f"{flag}/--no-{flag[2:]}", name], {"default": None, "help": text}
    several = get_origin(kind) in (tuple, dict)
    attributes = {
        "help": f"{text}; can be repeated" if several else text,
        "shell_complete": COMPLETIONS.get(name),
        "multiple": several,
    }
    return [flag, name], attributes if several else {**attributes, "type": _click_type(kind)}


def _plain(annotation: Any) -> Any:
    """The type itself of an optional type."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        # A mapping, or a name for one, is given like a mapping.
        annotation = next((part for part in parts if get_origin(part) is dict), parts[0])
    return _plain(annotation.__origin__) if hasattr(annotation, "__metadata__") else annotation


def _click_type(kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    return {int: click.INT, float: click.FLOAT, Path: click.Path(path_type=Path)}.get(
        kind, click.STRING
    )


def _help(field: FieldInfo) -> str:
    text = " ".join((field.description or "").split())
    default = field.default
    plain = not (default is None or field.is_required() or isinstance(default, bool | tuple | dict))
    # A default that depends on other options is part of the text.
    return f"{text}  [default: {default}]" if plain and "default: " not in text else text


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options given on the command line, in the form of a configuration file.

    Raises:
        ConfigError: an option with several parts is malformed.
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if "set" in given:
        given["set"] = parse_settings(given["set"])
    if "aux_task" in given:
        given["aux_task"] = parse_tasks(given["aux_task"])
    return given


def parse_tasks(given: Sequence[str]) -> dict[str, str]:
    """Files of auxiliary tasks by name, from ``NAME=FILE`` each.

    Raises:
        ConfigError: one is malformed, or a name is given twice.
    """
    tasks: dict[str, str] = {}
    for entry in given:
        name, _, file = entry.partition("=")
        if not (name and file):
            raise ConfigError(f"--aux-task {entry}: give NAME=FILE, such as wnli=wnli/train.tsv")
        if name in tasks:
            raise ConfigError(f"--aux-task {entry}: the name {name} is given twice")
        tasks[name] = file
    return tasks
