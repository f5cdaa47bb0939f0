"""Phase one: find plug-ins without importing them."""

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

from aang_core.errors import PluginError
from aang_core.plugins.primitive import CORE, Origin

GROUP = "aang"
"""The entry-point group of plug-ins; the value of an entry point names the hooks module."""


@dataclass(frozen=True)
class Candidate:
    """A plug-in that was found and is not imported yet.

    Attributes:
        origin: the plug-in's distribution, version and entry point.
        slot: of the candidates with the same slot, the first is loaded and shadows the others.
        source: the name of the module or file, for messages.
        load: imports and returns the module with the hooks; may raise anything.
        unreadable: why nobody knows whether the distribution contains a plug-in; None if it does.
    """

    origin: Origin
    slot: tuple[str, str]
    source: str
    load: Callable[[], object]
    unreadable: str | None = None


def find_candidates(local: Iterable[str] = ()) -> list[Candidate]:
    """Find all plug-ins: the core's own, then installed ones by distribution, then local ones.

    Args:
        local: files ``FILE.py`` or module names, in the order of loading.
    """
    return [_builtin(), *_installed(), *_local(local)]


def _builtin() -> Candidate:
    name = "aang_core.plugins.core_hooks"
    origin = Origin(CORE, _core_version(), "core")
    return Candidate(origin, ("installed", "core"), name, lambda: import_module(name))


def _core_version() -> str:
    try:
        return Distribution.from_name(CORE).version
    except Exception:  # run from a source tree that is not installed
        return "unknown"


def _installed() -> list[Candidate]:
    """Candidates from the installed distributions, sorted by distribution and entry point."""
    seen: dict[str, list[Candidate]] = {}
    for distribution in distributions():
        # The text is read first, because parsing the metadata of every distribution takes longer
        # than everything else here, and because broken metadata of unrelated distributions must
        # not matter.
        try:
            text = _entry_points_text(distribution)
        except (OSError, ValueError) as error:
            name = _distribution_name(distribution)
            seen.setdefault(normalised(name), [_unreadable(distribution, name, error)])
            continue
        if f"[{GROUP}]" not in text:
            continue
        name = _distribution_name(distribution)
        # The first on the path is the one that Python imports.
        seen.setdefault(normalised(name), _declared(distribution, name))
    found = [candidate for candidates in seen.values() for candidate in candidates]
    return sorted(found, key=lambda c: (normalised(c.origin.distribution), c.origin.entry_point))


def _entry_points_text(distribution: Distribution) -> str:
    """The content of ``entry_points.txt``; empty if there is no such file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not text.
    """
    text = distribution.read_text("entry_points.txt")
    folder = getattr(distribution, "_path", None)
    # importlib.metadata answers None for a file that it may not read, as for one that is not there.
    if text is None and isinstance(folder, Path) and (folder / "entry_points.txt").exists():
        text = (folder / "entry_points.txt").read_text(encoding="utf-8")
    return text or ""


def _unreadable(distribution: Distribution, name: str, error: Exception) -> Candidate:
    """A distribution of which nobody knows whether it contains a plug-in.

    One that goes by a plug-in's name is a plug-in that fails.
    """
    kind = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
    message = f"its entry_points.txt cannot be read ({kind}); reinstall {name}"
    origin = Origin(name, _distribution_version(distribution), name)
    if normalised(name).startswith("aang-plugin-"):
        return Candidate(origin, ("broken", name), name, _failing(message))
    doubt = f"{message}, or ignore this if it contains no plug-in of AANG"
    return Candidate(origin, ("broken", name), name, _failing(message), doubt)


def _distribution_name(distribution: Distribution) -> str:
    try:
        return str(distribution.metadata["Name"] or "unknown")
    except Exception:
        return "unknown"


def _distribution_version(distribution: Distribution) -> str:
    try:
        return str(distribution.version or "unknown")
    except Exception:
        return "unknown"


def _declared(distribution: Distribution, name: str) -> list[Candidate]:
    """The candidates of one distribution; a single failing one if they cannot be read."""
    version = _distribution_version(distribution)
    try:
        points = [point for point in distribution.entry_points if point.group == GROUP]
    except Exception as error:
        message = f"its entry_points.txt cannot be read ({error}); reinstall {name}"
        return [Candidate(Origin(name, version, name), ("broken", name), name, _failing(message))]
    return [
        Candidate(
            Origin(name, version, point.name),
            ("installed", point.name),
            point.value,
            point.load if point.pattern.match(point.value) else _failing(_bad_value(point)),
        )
        for point in points
    ]


def _bad_value(point: EntryPoint) -> str:
    return (
        f"its entry point reads {point.name} = {point.value!r}, which names no module; it must "
        f"read {point.name} = package.hooks"
    )


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
    return Candidate(origin, ("module", name), name, lambda: import_module(name))


def _local_file(path: Path) -> Candidate:
    """A plug-in in a single file. Its version is the digest of the file, for a run to record."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        origin = Origin(path.name, "missing", path.stem)
        failing = _failing(f"{path} cannot be read: {error.strerror}; check the path")
        return Candidate(origin, ("file", path.name), str(path), failing)
    origin = Origin(path.name, f"sha256-{digest}", path.stem)
    return Candidate(origin, ("file", path.name), str(path), lambda: _import_file(path))


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


def normalised(name: str) -> str:
    """Distribution names compare without case and with runs of ``-_.`` alike (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
