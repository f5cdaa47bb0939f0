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
from importlib.metadata import Distribution, PackageNotFoundError, distributions
from pathlib import Path

from aang_core.errors import PluginError
from aang_core.plugins.primitive import CORE, Origin, normalised

GROUP = "aang"
"""The entry-point group of plug-ins; the value of an entry point names the hooks module."""


@dataclass(frozen=True)
class Candidate:
    """A plug-in that was found and is not imported yet.

    Attributes:
        origin: the plug-in's distribution, version and entry point.
        slot: of the candidates with the same slot, the first is loaded and shadows the others.
        load: imports and returns the module with the hooks; may raise anything.
    """

    origin: Origin
    slot: tuple[str, str]
    load: Callable[[], object]


def find_candidates(local: Iterable[str] = ()) -> list[Candidate]:
    """Find all plug-ins: the core's own, then installed ones by distribution, then local ones.

    Args:
        local: files ``FILE.py`` or module names, in the order of loading.
    """
    return [_builtin(), *_installed(), *_local(local)]


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
    name = f"aang_local_plugin_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python file; give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look up their module by name while it is being executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
