"""Primitives and spaces of nobody's, for tests that need no plug-in."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aang_core import Origin, Primitive, Stage
from tests.support.plugins import SpaceEntry


def origin(distribution: str = "aang-plugin-x") -> Origin:
    return Origin(distribution, "1.0", distribution.removeprefix("aang-plugin-"))


def primitive(
    stage: Stage,
    name: str,
    *,
    provides: str = "",
    requires: str = "",
    target: str | Callable[..., Any] = "nowhere:Nothing",
    distribution: str = "aang-plugin-x",
) -> Primitive:
    """A primitive; traits are given with blanks between them."""
    return Primitive(
        name,
        "made up",
        origin(distribution),
        stage,
        target,
        frozenset(provides.split()),
        frozenset(requires.split()),
    )


def space_entry(
    name: str, source: Path | Mapping[str, Any], distribution: str = "aang-plugin-x"
) -> SpaceEntry:
    return SpaceEntry(name, "made up", origin(distribution), source)


def one_of_each() -> list[Primitive]:
    """The smallest set of primitives that has a legal objective: a/b/c/d."""
    return [
        primitive("data", "a"),
        primitive("transform", "b"),
        primitive("representation", "c"),
        primitive("output", "d"),
    ]
