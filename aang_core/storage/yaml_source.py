"""YAML files whose mistakes are told with file and line.

Lines, keys that are given twice and the limit on what aliases repeat are all read off the tree of
nodes, before any value is made of it. ruamel.yaml tells lines of values that it has made already,
which is too late for the limit; on its tree of nodes the same functions would be needed.
"""

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


_LONGEST = 250_000
"""Bytes of the largest file that is read; that takes seconds already."""


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
        ConfigError: it is not YAML, a key is given twice, or it is too large; the message names the
            line.
    """
    if len(content) > _LONGEST:
        raise ConfigError(f"{label}: is larger than {_LONGEST} bytes; is it the right file?")
    try:
        loader = kind(content)
        try:
            node = loader.get_single_node()
            _refuse_explosion(node, label)
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


_LARGEST = 20_000
"""Most values that a file may hold, each counted as often as aliases repeat it."""


def _refuse_explosion(root: yaml.Node | None, label: str) -> None:
    """Raise ConfigError for aliases that lead back to themselves, or make millions of a few lines.

    Loading shares what aliases repeat; whatever walks through the value afterwards does not.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = _LARGEST + 1  # what an alias in it finds
            total = 1 + sum(map(size, _children(node)))
            if total > _LARGEST:
                raise ConfigError(
                    f"{label}:{node.start_mark.line + 1}: what begins here comes to more than "
                    f"{_LARGEST} values, or refers to itself; is it the right file?"
                )
            sizes[id(node)] = total
        return sizes[id(node)]

    if root is not None:
        size(root)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


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
