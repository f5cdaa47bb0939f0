"""``aang_core`` names everything public and imports none of it unasked."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import aang_core
from tests.docs.documents import ROOT

INDEXES = [
    *("aang_core.cli", "aang_core.storage"),
    *(
        f"aang.{n}"
        for n in ("assembly", "cli", "config", "corpora", "modeling", "runs", "task_types")
    ),
]
"""Packages with names that are public, and imported when they are first used."""

PUBLIC = [
    *("aang_core", "aang_core.gradients", "aang", "aang_testing"),
    *("aang_plugin_diagnose", *INDEXES),
]
"""All modules that plug-ins may import from."""

PINNED = [
    str(path.parent.relative_to(ROOT))
    for path in (ROOT / "plugins").glob("*/pyproject.toml")
    if '"aang-core==' in path.read_text(encoding="utf-8")
]
"""Plug-ins that go with one version of the core, and use its inside."""

PLUGINS = [
    path
    for folder in (ROOT / "plugins", ROOT / "examples" / "plugins", ROOT / "docs")
    for path in sorted(folder.rglob("*.py"))
    if "aang_plugin" in str(path.relative_to(folder)) and "tests" not in path.parts
    if f"plugins/{path.relative_to(folder).parts[0]}" not in PINNED
]
"""Plug-ins as others write them, too."""

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


def test_every_public_name_is_there() -> None:
    gone = [name for name in aang_core.__all__ if getattr(aang_core, name, None) is None]
    assert gone == []
    assert set(aang_core.__all__) <= set(dir(aang_core))


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
    seen = _seen_by_type_checkers("aang_core")
    assert sorted(seen) == sorted(aang_core.__all__)
    assert _elsewhere(aang_core, seen) == []


def _elsewhere(index: ModuleType, seen: Mapping[str, str]) -> list[str]:
    """The names that a type checker finds in another module than the interpreter."""
    return [
        name
        for name, module in seen.items()
        if getattr(index, name) is not getattr(import_module(module), name)
    ]


@pytest.mark.parametrize("package", INDEXES)
def test_an_index_has_the_names_that_type_checkers_see(package: str) -> None:
    index = import_module(package)
    seen = _seen_by_type_checkers(package)
    assert _elsewhere(index, seen) == []
    assert set(dir(index)) == seen.keys()
    assert set(index.__all__) == seen.keys()
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        index.nothing_of_the_kind  # noqa: B018


def test_what_is_public_is_there_and_documented() -> None:
    wrong = []
    for module in PUBLIC[1:]:
        index = import_module(module)
        for name in index.__all__:
            found = getattr(index, name)
            if name not in str(index.__doc__):
                wrong.append(f"{module}: its docstring says nothing of {name}")
            if (inspect.isclass(found) or inspect.isroutine(found)) and not inspect.getdoc(found):
                wrong.append(f"{module}.{name} has no docstring")
    assert not wrong, "\n".join(wrong)


def _imports_of_the_core(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of every import from the core, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "aang_core":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.split(".")[0] == "aang_core")


def test_plugins_import_public_names_alone() -> None:
    assert len(PLUGINS) > 50
    inside = [
        f"{path.relative_to(ROOT)}: {module} {name}"
        for path in PLUGINS
        for module, name in _imports_of_the_core(path)
        if module not in PUBLIC or name not in import_module(module).__all__
    ]
    assert not inside, "\n".join(["these are not public:", *inside])


def test_it_says_that_it_is_typed() -> None:
    assert Path(aang_core.__file__).with_name("py.typed").exists()
