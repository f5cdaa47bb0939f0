"""Imports point one way: between the three rings, and between the folders of the inner two."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

KERNEL = [
    "errors",
    "lazy_names",
    "turns",
    "hookspecs",
    "storage",
    "plugins",
    "tasks",
    "gradients",
    "training",
    "objectives",
    "contracts",
    "checked",
    "fitting",
    "cli",
]
"""Folders and modules of the kernel, each of which may import those before it, and none after it.

``tasks``, ``gradients`` and ``training`` know nothing of stages: they come before ``objectives``.
"""

APPLICATION = [
    "task_types",
    "corpora",
    "modeling",
    "config",
    "assembly",
    "runs",
    "cli",
    "from_python",
]
"""Those of the text application."""

RINGS = {
    "aang_core": (ROOT / "aang_core", KERNEL),
    "aang": (ROOT / "plugins" / "aang" / "aang", APPLICATION),
}


def modules_of(package: str) -> dict[str, Path]:
    folder, _ = RINGS[package]
    names = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): path
        for path, parts in names.items()
    }


def imports(path: Path) -> Iterator[str]:
    """Names that a file imports, inside functions too; not what only type checkers read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def edges(package: str) -> set[tuple[str, str]]:
    """Pairs of modules of a package of which one imports the other."""
    modules = modules_of(package)
    found = set()
    for module, path in modules.items():
        for name in imports(path):
            if name.split(".")[0] == package:
                inner = name.removeprefix(package).removeprefix(".")
                found.add((module, inner if inner in modules else inner.rpartition(".")[0]))
    return {(of, to) for of, to in found if of not in ("", "__main__") and to not in ("", of)}


@pytest.mark.parametrize("package", RINGS)
def test_every_folder_has_its_place(package: str) -> None:
    layers = RINGS[package][1]
    rest = {module.split(".")[0] for module in modules_of(package)} - set(layers)
    assert rest <= {"", "__main__", "hooks"}


@pytest.mark.parametrize("package", RINGS)
def test_no_import_points_up(package: str) -> None:
    layers = RINGS[package][1]

    def layer(module: str) -> int:
        name = module.split(".")[0]
        return layers.index(name) if name in layers else len(layers)

    assert {(of, to) for of, to in edges(package) if layer(of) < layer(to)} == set()


@pytest.mark.parametrize("package", RINGS)
def test_no_import_leads_back_to_where_it_came_from(package: str) -> None:
    """Within a layer, too. A package's own index is left out: it imports what is in it."""
    pairs = edges(package)
    left = {
        module: {to for of, to in pairs if of == module and not module.startswith(f"{to}.")}
        for module in modules_of(package)
    }
    while free := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in free:
            del left[module]
    assert sorted(left) == []


def test_the_kernel_imports_no_plugin() -> None:
    found = {
        (module, name.split(".")[0])
        for module, path in modules_of("aang_core").items()
        for name in imports(path)
        if name.split(".")[0].startswith("aang") and name.split(".")[0] != "aang_core"
    }
    assert found == set()


def test_the_kernel_knows_no_text() -> None:
    """Neither transformers nor datasets."""
    text = {"transformers", "datasets", "tokenizers", "huggingface_hub"}
    found = {
        f"{module}: {name}"
        for module, path in modules_of("aang_core").items()
        for name in imports(path)
        if name.split(".")[0] in text
    }
    assert found == set()


def test_the_application_imports_no_other_plugin() -> None:
    found = {
        f"{module}: {name}"
        for module, path in modules_of("aang").items()
        for name in imports(path)
        if name.startswith(("aang_plugin", "aang_testing"))
    }
    assert found == set()
