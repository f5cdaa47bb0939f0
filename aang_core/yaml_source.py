"""YAML files whose mistakes are told with file and line."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from aang_core.errors import ConfigError

Location = tuple[int | str, ...]
"""Keys and indices that lead to a value: ``("transform", 2)``."""


class NumberLoader(yaml.SafeLoader):
    """Safe YAML in which ``1e-4`` is a number, as in YAML 1.2, and not the text that 1.1 sees."""


NumberLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+"),
    list("-+0123456789"),
)


def load_yaml(text: str) -> Any:
    """The value of a YAML document; raises ``yaml.YAMLError``."""
    # A subclass of the safe loader makes nothing but plain values either.
    return yaml.load(text, NumberLoader)


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


def parse_yaml(
    content: str | bytes, label: str, kind: type[yaml.SafeLoader] = yaml.SafeLoader
) -> tuple[Any, Source]:
    """The value that a file holds, and where in it everything is.

    kind: how plain values are read; a file of names is better read without ``1e-4`` as a number.

    Raises:
        ConfigError: it is not YAML, or a key is given twice; the message names the line.
    """
    try:
        loader = kind(content)
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
    return value, Source(label, node)


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
