"""Reads YAML, with errors that name file and line.

Line numbers, duplicate keys and the limit on what aliases repeat are all found in the tree of
nodes, before values are constructed. ruamel.yaml gives the lines of values after constructing them,
which is too late for the limit; with its tree of nodes, the same functions would be needed.
"""

import re
from collections.abc import Iterator
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
        ConfigError: it is not YAML, it has a duplicate key or a giant number, or it is too large;
            the message names the line.
    """
    if len(content) > _LONGEST:
        raise ConfigError(f"{label}: is larger than {_LONGEST} bytes; is it the right file?")
    try:
        loader = kind(content)
        try:
            node = loader.get_single_node()
            _refuse_explosion(node, label)
            _refuse_repeated_keys(node, label)
            _refuse_giants(node, label)
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


def _refuse_repeated_keys(node: yaml.Node | None, label: str) -> None:
    """Raise ConfigError for a duplicate key; YAML would silently keep the last value."""
    for mapping in _mappings(node, set()):
        seen: set[str] = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise ConfigError(f"{label}:{line}: the key {key.value} is given twice")
                seen.add(key.value)


_LARGEST = 20_000
"""The largest number of values in a file; a value that aliases repeat counts each time."""


def _refuse_explosion(root: yaml.Node | None, label: str) -> None:
    """Raise ConfigError for aliases that refer to themselves, or expand to very many values.

    Loading shares the values that aliases repeat, but code that walks through them visits each one.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = _LARGEST + 1  # the size that an alias to itself finds
            total = 1 + sum(map(size, _children(node)))
            if total > _LARGEST:
                raise ConfigError(
                    f"{label}:{node.start_mark.line + 1}: what begins here expands to more than "
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


_LONGEST_NUMBER = 400
"""Characters of a number; 300 digits already exceed every float."""


def _refuse_giants(node: yaml.Node | None, label: str) -> None:
    """Raise ConfigError for a whole number of more than 64 bits.

    No library takes one, and Python cannot even print those of thousands of digits, which
    hexadecimal and sexagesimal numbers can have.
    """
    for scalar in _numbers(node, set()):
        digits = scalar.value.replace("_", "").lstrip("+-").lower()
        whole = scalar.tag == "tag:yaml.org,2002:int"
        if len(digits) > _LONGEST_NUMBER or (whole and _whole(digits) >= 2**63):
            raise ConfigError(
                f"{label}:{scalar.start_mark.line + 1}: the number {scalar.value:.20}"
                f"{'…' if len(scalar.value) > 20 else ''} is too large"
            )


def _whole(digits: str) -> int:
    """The value of a whole number of YAML 1.1 without its sign; -1 if it is none."""
    try:
        if digits.startswith(("0b", "0x")):
            return int(digits, 0)
        if ":" in digits:
            parts = digits.split(":")
            return sum(int(part) * 60**i for i, part in enumerate(reversed(parts)))
        return int(digits, 8 if digits.startswith("0") else 10)
    except ValueError:  # PyYAML says what is wrong with it
        return -1


def _numbers(node: yaml.Node | None, visited: set[int]) -> Iterator[yaml.ScalarNode]:
    """Yield all numbers below a node, each once."""
    if node is None or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            yield node
        return
    for child in _children(node):
        yield from _numbers(child, visited)


def _mappings(node: yaml.Node | None, visited: set[int]) -> Iterator[yaml.MappingNode]:
    """Yield all mappings below a node, each once: an alias may refer to one of its parents."""
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
