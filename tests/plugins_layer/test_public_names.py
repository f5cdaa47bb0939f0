"""``aang_core`` names everything public and imports none of it unasked."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import aang_core

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


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    """The names are written three times: for type checkers, for ``*``, and for the import."""
    tree = ast.parse(Path(aang_core.__file__).read_text(encoding="utf-8"))
    (typed,) = [
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    homes = {
        alias.name: str(node.module).removeprefix("aang_core.")
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == aang_core._HOME_OF
    assert sorted(homes) == sorted(aang_core.__all__)


def test_it_says_that_it_is_typed() -> None:
    assert Path(aang_core.__file__).with_name("py.typed").exists()
