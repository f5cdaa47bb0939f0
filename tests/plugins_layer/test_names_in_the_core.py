"""The core names what plug-ins register in one place alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import aang_core
from aang_core import load_plugins

CORE = Path(aang_core.__file__).parent

MAY_NAME = {
    ("plugins/registry.py", "factored"),  # the weighter of a training that names none
}

OTHER_SENSES = {"task", "end-task", "mask", "replace", "unlabelled"}
"""Names that the core uses for something else: the end task, a mask, ``errors="replace"``, and the
option ``--unlabelled``."""


def names_of_plugins() -> set[str]:
    registry = load_plugins(environ={}).registry
    kinds = (
        *(registry.primitives(), registry.objectives, registry.recipes, registry.spaces),
        registry.task_types,
    )
    entries = [entry for kind in kinds for entry in kind]
    own = {entry.name for entry in entries if entry.origin.distribution == "aang-core"}
    return {entry.name for entry in entries} - own


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """All string literals except docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def test_no_plugin_is_named() -> None:
    names = names_of_plugins() - OTHER_SENSES
    assert {"factored", "s2orc", "tapt", "contrast", "static-td"} <= names
    named = {
        f"{place}:{line}: {value}"
        for path in CORE.rglob("*.py")
        for line, value in strings(path)
        if ((place := str(path.relative_to(CORE))), value) not in MAY_NAME
        if value in names or (value.startswith("aang-plugin-") and value[12:])
    }
    assert named == set()
