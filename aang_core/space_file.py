"""The content of a space file: what it may hold, and where in it a mistake is.

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

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.functional_validators import BeforeValidator

from aang_core.errors import ConfigError
from aang_core.registry import did_you_mean

Location = tuple[int | str, ...]
"""Keys and indices that lead to a value: ``("transform", 2)``."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Listed(_Strict):
    """A primitive as a space lists it."""

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


class Source:
    """Where a space comes from, so that a message can say where its mistake is.

    label: the file's path, or a phrase for a space that a plug-in gives as a mapping.
    node: root of the file's YAML nodes, which know their lines.
    """

    def __init__(self, label: str, node: yaml.Node | None = None) -> None:
        self.label = label
        self._node = node

    def at(self, location: Location) -> str:
        """``FILE, line N``, or the way to the value where there are no lines."""
        if self._node is None:
            return ", ".join([self.label, *(str(part) for part in location)])
        return f"{self.label}:{_line(self._node, location)}"


def read_space_file(path: Path) -> tuple[SpaceFile, Source]:
    """Read and validate a file.

    Raises:
        ConfigError: it cannot be read, is not YAML, or does not hold a space; with the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the space file {path} cannot be read: {error.strerror}") from error
    return parse_space_file(content, str(path))


def parse_space_file(content: str | bytes, label: str) -> tuple[SpaceFile, Source]:
    """Validate the content of a file; raises as :func:`read_space_file` does."""
    try:
        loader = yaml.SafeLoader(content)
        try:
            node = loader.get_single_node()
            _refuse_repeated_keys(node, label)
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_message(error, label)) from error
    # PyYAML lets these through for dates and numbers that do not exist and for deep nesting.
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"{label} cannot be read as YAML: {type(error).__name__}: {error}"
        ) from error
    if value is None:
        raise ConfigError(f"{label} is empty; a space needs a name and its four stages")
    source = Source(label, node)
    return validate_space(value, source), source


def validate_space(value: object, source: Source) -> SpaceFile:
    """Validate what a file or a plug-in gives as a space.

    Raises:
        ConfigError: it does not hold a space; the message says where and what it should be.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source.at(())}: a space is a mapping with the keys "
            f"{', '.join(SpaceFile.model_fields)}, not {type(value).__name__}"
        )
    try:
        return SpaceFile.model_validate(dict(value))
    except ValidationError as error:
        # A misspelled key is a missing one too; that it is unknown says more.
        first = min(error.errors(include_url=False), key=lambda e: e["type"] not in _UNKNOWN_KEY)
        raise ConfigError(f"{source.at(first['loc'])}: {_explain(first)}") from error


_UNKNOWN_KEY = ("extra_forbidden", "invalid_key")


def _explain(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, in the words of whoever wrote the file."""
    key = str(error["loc"][0])
    match error["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden" | "invalid_key":
            return f"unknown key {key}; {did_you_mean(key, SpaceFile.model_fields, 'the keys are')}"
        case "too_short":
            return f"{key} is empty; list at least one primitive"
        case "list_type":
            return f"{key} must be a list, not {error['input']!r}"
        case "string_type":
            return f"{key}: {error['input']!r} is not text; put it in quotes"
        case "string_pattern_mismatch":
            return f"{key}: {error['input']!r} may hold only lower-case letters, digits, + and -"
        case _:
            return f"{key}: {error['msg'].removeprefix('Value error, ')}"


def _yaml_message(error: yaml.YAMLError, label: str) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"{label}:{mark.line + 1}" if mark is not None else label
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{where}: not valid YAML: {problem}"


def _line(node: yaml.Node, location: Location) -> int:
    """The line, from 1, of the deepest node on the way to ``location``."""
    line = node.start_mark.line
    for part in location:
        if isinstance(node, yaml.MappingNode):
            step = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if step is None:
                break
            line, node = step[0].start_mark.line, step[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1


def _refuse_repeated_keys(node: yaml.Node | None, label: str) -> None:
    """Raise ConfigError for a key given twice, of which YAML would silently keep the last."""
    for mapping in _mappings(node, set()):
        seen: set[str] = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise ConfigError(f"{label}:{line}: the key {key.value} is twice")
                seen.add(key.value)


def _mappings(node: yaml.Node | None, visited: set[int]) -> Iterator[yaml.MappingNode]:
    """All mappings below a node, each once: an alias may lead back to where it stands."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value, visited)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _mappings(value, visited)
