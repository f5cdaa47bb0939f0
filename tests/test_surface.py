"""Tests stay outside: what they need of the inside of the core is in ``tests/support``."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]

OPEN = {"aang_core", "aang_core.cli", "aang_core.hookspecs", "aang_testing"}


def test_the_inside_is_imported_in_one_place() -> None:
    """A module of the core that moves changes a file of ``tests/support`` and no test."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "plugins").glob("*/tests/**/*.py")]
    inside = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}"
        for path in files
        if ROOT / "tests" / "support" not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        if str(node.module).startswith("aang_core") and node.module not in OPEN
    ]
    assert not inside, "\n".join(inside)
