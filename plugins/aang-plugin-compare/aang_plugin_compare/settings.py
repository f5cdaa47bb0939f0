"""Options of ``aang train`` from several places, and values that a grid chooses for some."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from aang_core import AangError, ConfigError, Primitive, did_you_mean
from aang_core.storage import NumberLoader, Source, parse_yaml

PUSHING = ("push_to_hub", "hub_private", "hub_license", "hub_language")
"""Options that push a run's model, which would push one run over another."""

WHY_NOT_PUSHED = "one run of several would be pushed; push the one you choose with aang push"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]
"""Folders get these names, so a name must not be a path and must fit every file system."""

Owners = Mapping[str, Primitive | None]
"""What may have options in a run, by name; see ``aang.assembly.option_owners``."""

_WORDS = {
    "too_short": "is empty",
    "string_pattern_mismatch": "is not a name; use letters, digits and . _ + -",
}
"""Messages in place of pydantic's, by its types of error."""


def with_sets(options: dict[str, Any]) -> dict[str, Any]:
    """Check that ``set`` holds options by name.

    Raises:
        ValueError: it holds something else.
    """
    sets = options.get("set") or {}
    if not isinstance(sets, Mapping) or not all(isinstance(of, Mapping) for of in sets.values()):
        raise ValueError("set: give options by name, such as {factored: {lr: 0.5}}")
    return options


Options = Annotated[dict[str, Any], AfterValidator(with_sets)]
"""Options of ``aang train``, with hyphens or underscores."""

ModelT = TypeVar("ModelT", bound=BaseModel)


@contextmanager
def told_at(where: str) -> Iterator[None]:
    """Put the place of a mistake, such as file and line, before its message."""
    try:
        yield
    except AangError as error:
        raise ConfigError(f"{where}: {error}") from error


def read_yaml(path: Path) -> tuple[Any, Source]:
    """The content of a comparison or search file, and the place of everything in it.

    Raises:
        ConfigError: it cannot be read, or is not YAML.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return parse_yaml(content, str(path), NumberLoader)


def validated(schema: type[ModelT], value: object, source: Source) -> ModelT:
    """The content of such a file, checked.

    Args:
        schema: what it may hold.
        value: what it holds.
        source: where that comes from, for messages.

    Raises:
        ConfigError: they differ; the message names the line.
    """
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        # An unknown key comes first: it may be the missing one, misspelt.
        first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        location = tuple(part for part in first["loc"] if part != "[key]")
        message = _WORDS.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
        if first["type"] == "extra_forbidden":
            hint = did_you_mean(str(location[-1]), schema.model_fields, "the keys are")
            message = f"there is no such key; {hint}"
        if first["type"] == "model_type":
            message = f"give the keys {', '.join(schema.model_fields)}"
        what = ": ".join([source.at(location), *filter(None, [".".join(map(str, location))])])
        raise ConfigError(f"{what}: {message}") from error


def plain_name(name: str) -> str:
    """The name of an option with underscores for dashes, but not in the name of a primitive."""
    primitive, dot, option = name.strip().rpartition(".")
    return f"{primitive}{dot}{option.replace('-', '_')}"


def layered(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """The options of all parts, where those of later parts replace those of earlier ones.

    Args:
        *parts: options of ``aang train``, with hyphens or underscores. What is in ``set`` is
            replaced option by option.

    Returns:
        The options with underscores; ``set`` is always among them.
    """
    options: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for part in parts:
        options |= {plain_name(name): value for name, value in part.items()}
        for name, of in (part.get("set") or {}).items():
            merged[name] = {**merged.get(name, {}), **of}
    return {**options, "set": merged}


def with_setting(options: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """The options, replaced by those of the setting.

    Args:
        options: options of ``aang train``.
        setting: values by option; ``NAME.OPTION`` goes into ``set``.
    """
    sets: dict[str, dict[str, Any]] = {}
    for name, value in setting.items():
        primitive, dot, option = name.rpartition(".")
        if dot:
            sets.setdefault(primitive, {})[option] = value
    return layered(options, {n: v for n, v in setting.items() if "." not in n}, {"set": sets})


def given_names(options: Mapping[str, Any]) -> set[str]:
    """The options that have a value, with ``NAME.OPTION`` for each of those in ``set``."""
    sets = options.get("set") or {}
    return {plain_name(name) for name in options} | {
        plain_name(f"{name}.{option}") for name, of in sets.items() for option in of
    }


def setting_text(setting: Mapping[str, Any]) -> str:
    """The setting as text for people."""
    return ", ".join(f"{name}={value}" for name, value in setting.items())


def applying(names: Sequence[str], owners: Owners) -> list[str]:
    """The options that a run has, given what may have options in it."""
    return [name for name in names if "." not in name or name.rpartition(".")[0] in owners]


def refuse_unowned(name: str, owners: Owners, what: str) -> None:
    """Check that ``NAME.OPTION`` is an option of something that a run uses.

    Args:
        name: the option; without a dot it is one of the run itself.
        owners: what has options in any of the runs.
        what: the beginning of the message.

    Raises:
        ConfigError: it is not.
    """
    owner, dot, option = name.rpartition(".")
    if not dot:
        return
    if owner not in owners:
        hint = did_you_mean(owner, owners, "they use")
        raise ConfigError(f"{what}, but no run uses a primitive or weighter {owner!r}; {hint}")
    primitive = owners[owner]
    if primitive is None:
        return
    takes = inspect.signature(primitive.load()).parameters
    if option not in takes and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        hint = did_you_mean(option, takes, "it takes")
        raise ConfigError(
            f"{what}, but {primitive.stage} {primitive} has no option {option!r}; {hint}"
        )
