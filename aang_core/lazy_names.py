"""Package indexes that import each name when it is first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and the ``__dir__`` of a package's index.

    Importing the index is then cheap, whatever its names need.

    Args:
        package: the name of the package.
        homes: for each module, by its full name, the public names in it, separated by spaces.

    Returns:
        The functions to assign to ``__getattr__`` and ``__dir__`` in the package's ``__init__.py``.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    def names() -> list[str]:
        return sorted(home_of)

    return get, names
