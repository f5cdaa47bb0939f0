"""What the value of an option may be, and how it is read from the command line, YAML and Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from aang.task_types.cells import number
from aang_core.errors import ConfigError
from aang_core.storage.yaml_source import NumberLoader, parse_yaml

LARGEST_NUMBER = 10**9
"""Largest count that an option takes; products of two fit into 64 bits."""

BALANCED: Literal["balanced"] = "balanced"
"""The value of ``--class-weights`` that takes the inverse of each class's number of rows."""


def in_a_list(value: Any) -> tuple[str, ...]:
    """Texts, paths and patterns as a tuple of texts; in a file a single one need not be in a list.

    ``5`` in YAML is the name 5.
    """
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str | int | float | Path) for item in items):
        raise ValueError("should be a text or a list of texts")
    if any(isinstance(item, bool) for item in items):
        raise ValueError("holds true or false, as YAML reads yes, no, on and off; put it in quotes")
    return tuple(map(str, items))


def at_commas(value: Any) -> tuple[str, ...]:
    """Names in a list, or in one text with commas between them."""
    names = in_a_list(value)
    if len(names) == 1:
        names = tuple(names[0].split(","))
    names = tuple(name.strip() for name in names)
    if "" in names or len(set(names)) < len(names):
        raise ValueError("every class needs a name of its own")
    return names


def _by_class(value: Any) -> dict[str, float] | str | None:
    """The weight of each class, from a mapping or from ``NAME=WEIGHT`` as the command line has it.

    Names are read as labels are: a class ``1`` in YAML is the class ``"1"``.
    """
    if value in (None, BALANCED, (BALANCED,), [BALANCED]):
        return value if value is None else BALANCED
    # A class may have an equals sign in its name.
    mapped = isinstance(value, Mapping)
    entries = value.items() if mapped else [t.rpartition("=")[::2] for t in in_a_list(value)]
    weights: dict[str, float] = {}
    for name, given in ((str(name), given) for name, given in entries):
        weight = number(given)
        if not name or weight is None or weight <= 0:
            raise ValueError(
                f"give {BALANCED}, or NAME=WEIGHT with a number above zero, such as negative=2.5"
            )
        if name in weights:
            raise ValueError(f"the class {name} is given twice")
        weights[name] = weight
    return weights


def _from_home(value: Any) -> Any:
    """Replace ``~``, which no shell does in ``--train=~/x``, and take paths for names too."""
    if isinstance(value, Mapping):
        return {name: _from_home(part) for name, part in value.items()}
    if not isinstance(value, str | Path) or not str(value).startswith("~"):
        return str(value) if isinstance(value, Path) else value
    try:
        return str(Path(value).expanduser())
    except RuntimeError as error:
        raise ValueError(f"{value}: there is no such home folder; give the path") from error


def parse_settings(settings: Any) -> dict[str, dict[str, Any]]:
    """Options by name, from a mapping or from ``NAME.OPTION=VALUE`` each, with VALUE in YAML.

    Raises:
        ConfigError: they have another form.
    """
    if isinstance(settings, Mapping):
        if not all(isinstance(options, Mapping) for options in settings.values()):
            raise ConfigError(f"--set {settings}: give it as in {{factored: {{lr: 0.5}}}}")
        return {str(name): dict(options) for name, options in settings.items()}
    parsed: dict[str, dict[str, Any]] = {}
    for setting in settings if isinstance(settings, list | tuple) else [settings]:
        target, equals, value = str(setting).partition("=")
        name, dot, option = target.rpartition(".")
        if not (equals and dot and name and option):
            raise ConfigError(f"--set {setting}: give NAME.OPTION=VALUE, such as factored.lr=0.5")
        parsed.setdefault(name, {})[option.replace("-", "_")], _ = parse_yaml(
            value, f"--set {setting}", NumberLoader
        )
    return parsed


Positive = Annotated[int, Field(gt=0, le=LARGEST_NUMBER)]
"""A count of one or more."""

Count = Annotated[int, Field(ge=0, le=LARGEST_NUMBER)]
"""A count of zero or more."""

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
Several = Annotated[tuple[str, ...], BeforeValidator(in_a_list)]
Name = Annotated[str, BeforeValidator(_from_home)]
"""A name, or the path of a file or folder."""

File = Annotated[Path, BeforeValidator(_from_home)]
Settings = dict[str, dict[str, Any]]
"""Options of primitives and weighters, by their names."""

ClassWeights = Annotated[dict[str, float] | Literal["balanced"] | None, PlainValidator(_by_class)]
"""The weight of each class, or ``balanced``."""
