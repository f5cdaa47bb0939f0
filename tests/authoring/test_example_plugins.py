"""The plug-ins of others in ``examples/plugins``: small, installed, listed and checked."""

import ast
import json
from pathlib import Path

import pytest

from tests.authoring.installation import EXAMPLES, installed, run

each_package = pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One in which pip has installed all of them."""
    return installed(tmp_path_factory.mktemp("site"), *EXAMPLES)


@each_package
def test_a_package_is_under_80_lines_and_needs_public_names_only(folder: Path) -> None:
    (module,) = folder.glob("*.py")
    files = [folder / "pyproject.toml", module]
    lines = [line for file in files for line in file.read_text().splitlines() if line.strip()]
    assert len(lines) < 80
    tree = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    names = {node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module}
    assert {name for name in names if name.startswith("aang")} == {"aang_core"}


def test_they_are_listed_with_where_they_came_from(environment: dict[str, str]) -> None:
    done = run(environment, "aang_core", "list-primitives", "--json")
    rows = {(row["stage"], row["name"]): row["distribution"] for row in json.loads(done.stdout)}
    assert rows["transform", "span-mask"] == "aang-plugin-span-mask"
    assert rows["output", "capitalisation"] == "aang-plugin-capitalisation"
    assert rows["weighter", "grad-cosine"] == "aang-plugin-grad-cosine"
    assert rows["transform", "drop-tokens"] == "aang-plugin-drop-tokens"
    assert rows["output", "r-drop"] == "aang-plugin-r-drop"
    assert rows["weighter", "equal-loss"] == "aang-plugin-equal-loss"
    assert rows["weighter", "a-gem"] == "aang-plugin-a-gem"


@pytest.mark.full
def test_they_pass_their_own_tests(environment: dict[str, str]) -> None:
    """Those that came with them; that is what the checks of ``aang check-plugin`` are there too."""
    tests = [folder / "tests" for folder in EXAMPLES]
    done = run(environment, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout
    assert " skipped" not in done.stdout


@pytest.mark.full
@each_package
def test_check_plugin_passes_them(environment: dict[str, str], folder: Path) -> None:
    done = run(environment, "aang_core", "check-plugin", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
