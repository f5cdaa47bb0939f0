"""Imports of the core point one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import aang_core

CORE = Path(aang_core.__file__).parent

LAYERS = [
    "errors",
    "printable",
    "lazy_names",
    "turns",
    "progress_bars",
    "hookspecs",
    "storage",
    "plugins",
    "tasks",
    "gradients",
    "training",
    "objectives",
    "contracts",
    "task_types",
    "corpora",
    "checked",
    "modeling",
    "config",
    "assembly",
    "runs",
    "diagnosis",
    "authoring",
    "testing",
    "fitting",
    "cli",
    "from_python",
]
"""Folders and modules of the core, each of which may import those before it, and none after it.

``tasks``, ``gradients`` and ``training`` are the tasks layer: they come before ``objectives``.
"""


def module_of(path: Path) -> str:
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in CORE.rglob("*.py")}


def imports(path: Path) -> Iterator[str]:
    """Modules of the core that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "aang_core":
                inner = name.removeprefix("aang_core").removeprefix(".")
                yield inner if inner in MODULES else inner.rpartition(".")[0]


EDGES = {
    (module, imported)
    for module, path in MODULES.items()
    for imported in imports(path)
    if module not in ("", "__main__") and imported not in ("", module)
}


def test_every_folder_has_its_place() -> None:
    assert {module.split(".")[0] for module in MODULES} == {"", "__main__", *LAYERS}


def test_no_import_points_up() -> None:
    def layer(module: str) -> int:
        return LAYERS.index(module.split(".")[0])

    upward = {(of, to) for of, to in EDGES if layer(of) < layer(to)}
    assert upward == set()


def test_no_import_leads_back_to_where_it_came_from() -> None:
    """Within a layer, too. A package's own index is left out: it imports what is in it."""
    left = {
        module: {to for of, to in EDGES if of == module and not module.startswith(f"{to}.")}
        for module in MODULES
    }
    while free := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in free:
            del left[module]
    assert sorted(left) == []
