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

BELOW = {"aang-core": ".", "aang": "plugins/aang"}
"""Distributions whose own dependencies those that build on them have, too."""

UNDECLARED = {"pandas"}
"""What the application imports when it is there already, or asked for.

``datasets`` installs pandas, which the tables of ``Run`` are.
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


def declared(folder: Path) -> set[str]:
    """The distributions that a distribution's metadata name, extras included."""
    about = project(folder)
    extras = about.get("optional-dependencies", {})
    return names([*about["dependencies"], *(line for lines in extras.values() for line in lines)])


def test_the_kernel_declares_what_it_imports() -> None:
    about = project(ROOT)
    needed = names(about["dependencies"])
    found = imported(ROOT / "aang_core")
    assert found - needed == {"aang"}
    assert needed - found == set()


def test_a_plugin_declares_what_it_imports_besides_what_it_builds_on() -> None:
    below = {name: declared(ROOT / path) for name, path in BELOW.items()}
    wrong = []
    for folder in PLUGINS:
        named = declared(folder)
        found = imported(folder / folder.name.replace("-", "_"))
        given = set().union(*(of for name, of in below.items() if name in named))
        missing, idle = found - named - given, named - found
        # Recipes name primitives of plug-ins that their module does not import.
        idle = {name for name in idle if "aang-plugin-" not in name}
        if folder.name == "aang":
            missing -= UNDECLARED
        wrong += [f"{folder.name} does not declare {name}" for name in sorted(missing)]
        wrong += [f"{folder.name} does not import {name}" for name in sorted(idle)]
    assert wrong == []


def test_the_application_brings_all_plugins_but_one() -> None:
    """SetFit needs sentence-transformers, which few people want for one more candidate."""
    brought = names(project(ROOT / "plugins" / "aang")["dependencies"])
    standard = {folder.name for folder in PLUGINS if folder.name.startswith("aang-plugin-")}
    standard.remove("aang-plugin-setfit")
    assert {name for name in brought if name.startswith("aang-plugin-")} == standard
