"""Package indexes that import each name when it is first used."""

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_index(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the ``__getattr__``, the ``__dir__`` and the ``__all__`` of a package's index.

    Its names are those that it imports for type checkers, with ``from module import Name as Name``
    under ``if TYPE_CHECKING:``. So each name is written once, type checkers see the same names as
    the interpreter, and importing the index is cheap, whatever its names need.

    Args:
        package: the name of the package.

    Returns:
        The three, for the index to assign where type checkers do not look: with a ``__getattr__``
        they would accept any misspelled name.
    """
    index = sys.modules[package]
    home_of = {
        alias.name: str(node.module)
        for branch in ast.parse(inspect.getsource(index)).body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(index, name, value)
        return value

    names = sorted(home_of)
    return get, names.copy, names
