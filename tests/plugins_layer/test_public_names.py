"""``aang_core`` names everything public and imports none of it unasked."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import aang_core
from tests.docs.documents import ROOT

INDEXES = [
    f"aang_core.{name}" for name in ("assembly", "cli", "corpora", "modeling", "runs", "storage")
]
"""Packages with names that are public, and imported when they are first used."""

PUBLIC = ["aang_core", "aang_core.config", "aang_core.testing", *INDEXES]
"""All modules that plug-ins may import from."""

PLUGINS = [
    path
    for folder in (ROOT / "plugins", ROOT / "examples" / "plugins", ROOT / "docs")
    for path in sorted(folder.rglob("*.py"))
    if "aang_plugin" in str(path.relative_to(folder)) and "tests" not in path.parts
]

HEAVY = {"torch", "transformers", "datasets", "numpy", "sklearn", "pydantic", "rich", "yaml"}


def _imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import aang_core",
        "from aang_core import hookimpl, RegisterPrimitive",
        "import aang_core; aang_core.load_plugins()",
        "from aang_core import AangError, Primitive, Registry, Objective",
        *(f"import {name}" for name in INDEXES),
    ],
)
def test_the_light_names_import_nothing_heavy(code: str) -> None:
    assert not _imported_by(code) & HEAVY


@pytest.mark.parametrize("name", aang_core.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(aang_core, name) is not None
    assert name in dir(aang_core)


def test_a_misspelled_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="hookimp"):
        aang_core.hookimp  # type: ignore[attr-defined]  # noqa: B018


def _seen_by_type_checkers(package: str) -> dict[str, str]:
    """The names that an index imports for type checkers alone, and their modules."""
    tree = ast.parse(Path(str(import_module(package).__file__)).read_text(encoding="utf-8"))
    (typed,) = [
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    return {
        alias.name: str(node.module)
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    """The names are written three times: for type checkers, for ``*``, and for the import."""
    homes = {
        name: module.removeprefix("aang_core.")
        for name, module in _seen_by_type_checkers("aang_core").items()
    }
    assert homes == aang_core._HOME_OF
    assert sorted(homes) == sorted(aang_core.__all__)


@pytest.mark.parametrize("package", INDEXES)
def test_an_index_has_the_names_that_type_checkers_see(package: str) -> None:
    index = import_module(package)
    seen = _seen_by_type_checkers(package)
    homes = {name: module for module, names in index._HOMES.items() for name in names.split()}
    assert homes == seen
    own = {"main"} if package == "aang_core.cli" else set()
    assert set(index.__all__) == seen.keys() | own
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        index.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("module", PUBLIC[1:])
def test_what_is_public_is_there_and_documented(module: str) -> None:
    index = import_module(module)
    for name in index.__all__:
        found = getattr(index, name)
        assert f"{name}" in str(index.__doc__), f"{module}: its docstring says nothing of {name}"
        if inspect.isclass(found) or inspect.isroutine(found):
            assert inspect.getdoc(found), f"{module}.{name} has no docstring"


def _imports_of_the_core(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of every import from the core, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "aang_core":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.split(".")[0] == "aang_core")


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_plugins_import_public_names_alone(path: Path) -> None:
    for module, name in _imports_of_the_core(path):
        assert module in PUBLIC, f"{path}: {module} is not public"
        assert name in import_module(module).__all__, f"{path}: {module}.{name} is not public"


def test_it_says_that_it_is_typed() -> None:
    assert Path(aang_core.__file__).with_name("py.typed").exists()
