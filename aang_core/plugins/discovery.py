"""Phase one: find plug-ins without importing them."""

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distributions,
    packages_distributions,
)
from pathlib import Path

from aang_core.errors import PluginError
from aang_core.plugins.name_table import normalised
from aang_core.plugins.primitive import CORE, Origin

GROUP = "aang"
"""The entry-point group of plug-ins; the value of an entry point names the hooks module."""

_LOCAL = "aang_local_plugin_"
"""Beginning of the module names of plug-ins in a single file."""


@dataclass(frozen=True)
class Candidate:
    """A plug-in that was found and is not imported yet.

    Attributes:
        origin: the plug-in's distribution, version and entry point.
        slot: of the candidates with the same slot, the first is loaded and shadows the others.
        load: imports and returns the module with the hooks; may raise anything.
        module: the name of that module, if an entry point names it.
    """

    origin: Origin
    slot: tuple[str, str]
    load: Callable[[], object]
    module: str = ""


def find_candidates(local: Iterable[str] = ()) -> list[Candidate]:
    """Find all plug-ins: the core's own, then installed ones by distribution, then local ones.

    Args:
        local: files ``FILE.py`` or module names, in the order of loading.
    """
    return [_builtin(), *_installed(), *_local(local)]


def plugin_of(module: str, file: str) -> Origin | None:
    """The plug-in that a module belongs to; None if it is of no installed one and no single file.

    Args:
        module: the module's name.
        file: the module's file.
    """
    package = module.partition(".")[0]
    if package.startswith(_LOCAL):
        return _local_file(Path(file)).origin
    owners = packages_distributions().get(package, [])
    for candidate in _installed():
        if package == candidate.module.partition(".")[0] or candidate.origin.distribution in owners:
            return candidate.origin
    return None


def _builtin() -> Candidate:
    name = "aang_core.plugins.core_hooks"
    try:
        version = Distribution.from_name(CORE).version
    except PackageNotFoundError:  # run from a source tree that is not installed
        version = "unknown"
    origin = Origin(CORE, version, "core")
    return Candidate(origin, ("installed", "core"), partial(import_module, name))


def _installed() -> list[Candidate]:
    """Candidates from the installed distributions, sorted by distribution and entry point."""
    seen: dict[str, list[Candidate]] = {}
    for distribution in distributions():
        # The text is read first, because parsing the metadata of every distribution takes longer
        # than everything else here, and because broken metadata of unrelated distributions must
        # not matter.
        try:
            text = distribution.read_text("entry_points.txt") or ""
        except (OSError, ValueError):
            continue
        if f"[{GROUP}]" in text:
            name = str(distribution.metadata["Name"] or "unknown")
            # The first on the path is the one that Python imports.
            seen.setdefault(normalised(name), _declared(distribution, name))
    found = [candidate for candidates in seen.values() for candidate in candidates]
    return sorted(found, key=lambda c: (normalised(c.origin.distribution), c.origin.entry_point))


def _declared(distribution: Distribution, name: str) -> list[Candidate]:
    """The candidates of one distribution; a single failing one if they cannot be read."""
    version = str(distribution.metadata["Version"] or "unknown")
    try:
        points = [point for point in distribution.entry_points if point.group == GROUP]
    except Exception as error:
        message = f"its entry_points.txt cannot be read ({error}); reinstall {name}"
        return [Candidate(Origin(name, version, name), ("broken", name), _failing(message))]
    return [
        Candidate(
            Origin(name, version, point.name),
            ("installed", point.name),
            point.load,
            # `point.module` raises on a value that names none; loading it says so.
            point.value.partition(":")[0],
        )
        for point in points
    ]


def _failing(message: str) -> Callable[[], object]:
    def load() -> object:
        raise PluginError(message)

    return load


def _local(sources: Iterable[str]) -> Iterator[Candidate]:
    """Candidates given by file or module name; duplicates are ignored."""
    seen: set[str] = set()
    for source in sources:
        is_file = source.endswith(".py") or os.sep in source
        identity = str(Path(source).resolve()) if is_file else source
        if identity not in seen:
            seen.add(identity)
            yield _local_file(Path(source)) if is_file else _local_module(source)


def _local_module(name: str) -> Candidate:
    origin = Origin(name, "local", name)
    return Candidate(origin, ("module", name), partial(import_module, name))


def _local_file(path: Path) -> Candidate:
    """A plug-in in a single file. Its version is the digest of the file, for a run to record."""
    load: Callable[[], object] = partial(_import_file, path)
    try:
        version = f"sha256-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        version = "missing"
        load = _failing(f"{path} cannot be read: {error.strerror}; check the path")
    return Candidate(Origin(path.name, version, path.stem), ("file", path.name), load)


def _import_file(path: Path) -> object:
    """Import a file under a special name, so that it cannot shadow another module."""
    name = f"{_LOCAL}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python file; give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look up their module by name while it is being executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ModuleNotFoundError) and error.name:
            beside = path.with_name(error.name)
            if beside.is_dir() or beside.with_suffix(".py").is_file():
                raise PluginError(
                    f"it imports {error.name}, which is beside it, and a plug-in from a file "
                    "imports nothing from its folder; put all into the one file, or install a "
                    "package"
                ) from error
        raise
    return module
