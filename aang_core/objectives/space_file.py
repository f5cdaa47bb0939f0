"""The schema of a space file, and the place of a mistake in it.

```yaml
name: mine
summary: what it is for            # optional
data: [task]
transform: [bert-op, mask]
representation:
  - bidirectional
  - random-factorized: {pairs: 0.6}  # a primitive with options
output: [denoise, end-task]
exclude: [task/mask/bidirectional/end-task]  # optional
```
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.functional_validators import BeforeValidator

from aang_core.errors import ConfigError
from aang_core.plugins.registry import did_you_mean
from aang_core.storage.yaml_source import Source, parse_yaml


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Listed(_Strict):
    """A primitive as listed in a space."""

    name: Annotated[str, StringConstraints(min_length=1)]
    options: dict[str, Any] = {}


def _as_listed(value: object) -> object:
    """Read ``name`` or ``{name: {option: value}}``."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        if isinstance(name, str) and isinstance(options, Mapping):
            return {"name": name, "options": dict(options)}
    raise ValueError(
        f"{value!r} is neither the name of a primitive nor one name with its options, as in "
        "random-factorized: {pairs: 0.6}"
    )


_Stage = Annotated[
    list[Annotated[Listed, BeforeValidator(_as_listed)]],
    Field(min_length=1),
]


class SpaceFile(_Strict):
    """The validated content of a space file."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9+-]+$")]
    summary: str = ""
    data: _Stage
    transform: _Stage
    representation: _Stage
    output: _Stage
    exclude: list[str] = []


def read_space_file(path: Path) -> tuple[SpaceFile, Source]:
    """Read and validate a space file.

    Raises:
        ConfigError: it cannot be read, is not YAML, or does not hold a space; the message names the
            line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the space file {path} cannot be read: {error.strerror}") from error
    return parse_space_file(content, str(path))


def parse_space_file(content: str | bytes, label: str) -> tuple[SpaceFile, Source]:
    """Validate the content of a space file; raises like :func:`read_space_file`."""
    value, source = parse_yaml(content, label)
    if value is None:
        raise ConfigError(f"{label} is empty; a space needs a name and its four stages")
    return validate_space(value, source), source


def validate_space(value: object, source: Source) -> SpaceFile:
    """Validate a space from a file or from a plug-in.

    Raises:
        ConfigError: it is not a space; the message says where and what was expected.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source.at(())}: a space is a mapping with the keys "
            f"{', '.join(SpaceFile.model_fields)}, not {type(value).__name__}"
        )
    try:
        return SpaceFile.model_validate(dict(value))
    except ValidationError as error:
        # A misspelled key is also a missing key; that it is unknown is the more helpful message.
        first = min(error.errors(include_url=False), key=lambda e: e["type"] not in _UNKNOWN_KEY)
        raise ConfigError(f"{source.at(first['loc'])}: {_explain(first)}") from error


_UNKNOWN_KEY = ("extra_forbidden", "invalid_key")


def _explain(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, in the terms of the file."""
    key = ".".join(map(str, error["loc"][:1]))
    match error["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden" | "invalid_key" if key:
            return f"unknown key {key}; {did_you_mean(key, SpaceFile.model_fields, 'the keys are')}"
        case "too_short":
            return f"{key} is empty; list at least one primitive"
        case "value_error":
            return f"{key}: {error['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{key}: {error['input']!r}: {error['msg']}"
