"""Click options made from a pydantic schema, so that options are described in one place."""

from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aang_core.cli.completion import COMPLETIONS

Command = Callable[..., Any]


def options_of(
    schema: type[BaseModel], *, skip: frozenset[str] = frozenset()
) -> Callable[[Command], Command]:
    """A decorator that adds an option for each field of ``schema``, in the fields' order.

    An option that is not given is None (an empty tuple if it may be repeated), so that it can be
    told from an option given with its default value.
    """

    def add(command: Command) -> Command:
        for name, field in reversed(schema.model_fields.items()):
            if name not in skip:
                command = _option(name, field)(command)
        return command

    return add


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    flag = f"--{name.replace('_', '-')}"
    kind = _plain(field.annotation)
    text = _help(field)
    if kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
    if get_origin(kind) in (tuple, dict):
        return click.option(
            *(flag, name),
            multiple=True,
            help=f"{text}; can be repeated",
            shell_complete=COMPLETIONS.get(name),
        )
    return click.option(
        *(flag, name),
        type=_click_type(kind),
        default=None,
        help=text,
        shell_complete=COMPLETIONS.get(name),
    )


def _plain(annotation: Any) -> Any:
    """The type itself of an optional type."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        # A mapping, or a name for one, is given like a mapping.
        annotation = next((part for part in parts if get_origin(part) is dict), parts[0])
    return annotation


def _click_type(kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    return {int: click.INT, float: click.FLOAT, Path: click.Path(path_type=Path)}.get(
        kind, click.STRING
    )


def _help(field: FieldInfo) -> str:
    text = field.description or ""
    default = field.default
    plain = not (default is None or field.is_required() or isinstance(default, bool | tuple | dict))
    # A default that depends on other options is part of the text.
    return f"{text}  [default: {default}]" if plain and "default: " not in text else text
