"""Reads YAML, with errors that name file and line.

Line numbers, duplicate keys and too many values repeated by aliases are all found in PyYAML's tree
of nodes, before values are constructed.
"""

import re
from typing import Any

import yaml

from aang_core.errors import ConfigError

Location = tuple[int | str, ...]
"""Keys and indices that lead to a value: ``("transform", 2)``."""


class NumberLoader(yaml.SafeLoader):
    """Reads safe YAML in which ``1e-4`` is a number, as in YAML 1.2; in YAML 1.1 it is text."""


NumberLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


_LONGEST = 250_000
"""The largest file that is read, in bytes; it already takes seconds."""

_LARGEST = 20_000
"""The largest number of values in a file; a value that aliases repeat counts each time."""


class Source:
    """Where a value comes from, so that a message can say where a mistake is.

    Args:
        label: the file's path, or a phrase for a space that a plug-in gives as a mapping.
        node: the root of the file's YAML nodes, which know their lines.
    """

    def __init__(self, label: str, node: yaml.Node | None = None) -> None:
        self.label = label
        self._node = node

    def at(self, location: Location) -> str:
        """``FILE:LINE`` of a value, or the keys that lead to it if there are no lines."""
        if self._node is None:
            return ", ".join([self.label, *(str(part) for part in location)])
        return f"{self.label}:{_line(self._node, location)}"


def parse_yaml(
    content: str | bytes, label: str, kind: type[yaml.SafeLoader] = yaml.SafeLoader
) -> tuple[Any, Source]:
    """Parse the content of a YAML file.

    Args:
        content: the content.
        label: the file's path, for messages.
        kind: the loader; a file of names should not read ``1e-4`` as a number.

    Returns:
        The value, and the place of everything in it.

    Raises:
        ConfigError: it is not YAML, it has a duplicate key, or it is too large; the message names
            the line.
    """
    if len(content) > _LONGEST:
        raise ConfigError(f"{label}: is larger than {_LONGEST} bytes; is it the right file?")
    try:
        loader = kind(content)
        try:
            node = loader.get_single_node()
            if node is not None:
                _check(node, label, 0)
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_message(error, label)) from error
    # PyYAML raises these for impossible dates and numbers and for deep nesting.
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


def _check(node: yaml.Node, label: str, before: int) -> int:
    """Check a node and all below it.

    YAML would silently keep the last value of a duplicate key. Loading shares the values that
    aliases repeat, but code that walks through them visits each one.

    Args:
        node: the node.
        label: the file's path.
        before: number of nodes visited before this one.

    Returns:
        The number of nodes visited so far.

    Raises:
        ConfigError: a mapping has a duplicate key, or there are too many values.
    """
    line = node.start_mark.line + 1
    count = before + 1
    if count > _LARGEST:
        raise ConfigError(f"{label}:{line}: more than {_LARGEST} values; is it the right file?")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            count = _check(item, label, count)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise ConfigError(f"{label}:{line}: the key {key.value} is given twice")
                seen.add(key.value)
            count = _check(value, label, count)
    return count
