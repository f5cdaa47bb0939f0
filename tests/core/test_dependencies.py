"""What a distribution imports is among its dependencies, and nothing else is."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from tests.docs.documents import ROOT

PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
DISTRIBUTIONS = packages_distributions()

UNDECLARED = {"pandas", "ipython"}
"""What is imported when it is there already, or asked for.

``datasets`` installs pandas, which the tables of ``Run`` are; a notebook has loaded IPython, which
shows progress there.
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: Iterable[str]) -> set[str]:
    return {normal(re.split(r"[^A-Za-z0-9._-]", line)[0]) for line in requirements}


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def imported(package: Path) -> set[str]:
    """The distributions that a package imports, those of the standard library left out."""
    modules: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(str(node.module).partition(".")[0])
    # Stubs such as _typeshed are there for type checkers alone.
    foreign = {m for m in modules - sys.stdlib_module_names if m != package.name and m[0] != "_"}
    return {normal(DISTRIBUTIONS.get(module, [module])[0]) for module in foreign}


def test_the_core_declares_what_it_imports() -> None:
    about = project(ROOT)
    needed = names(about["dependencies"])
    extras = about["optional-dependencies"]
    optional = names(
        [
            *extras["testing"],
            "pytest",
        ]
    )
    found = imported(ROOT / "aang_core")
    assert found - needed - optional == UNDECLARED
    assert needed - found == set()
    assert optional - found == set()


def test_a_plugin_declares_what_it_imports_besides_what_the_core_needs() -> None:
    of_the_core = names(project(ROOT)["dependencies"])
    wrong = []
    for folder in PLUGINS:
        about = project(folder)
        extras = about.get("optional-dependencies", {}).values()
        declared = names([*about["dependencies"], *(line for lines in extras for line in lines)])
        found = imported(folder / folder.name.replace("-", "_"))
        missing, idle = found - declared - of_the_core, declared - found
        wrong += [f"{folder.name} does not declare {name}" for name in sorted(missing)]
        wrong += [f"{folder.name} does not import {name}" for name in sorted(idle)]
    assert wrong == []


def test_the_standard_extra_is_all_plugins() -> None:
    standard = names(project(ROOT)["optional-dependencies"]["standard"])
    assert standard == {folder.name for folder in PLUGINS}
