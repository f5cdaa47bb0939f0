"""Phase one finds plug-ins without importing them; phase two loads each and records the outcome."""

import hashlib
import importlib.util
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distributions,
    packages_distributions,
)
from pathlib import Path
from typing import Any, Literal

from aang_core.errors import PluginError, UnknownNameError, place_of, text_of
from aang_core.plugins.hooks import Staging, implemented_hooks
from aang_core.plugins.primitive import CORE, Entry, Origin, normalised
from aang_core.plugins.registry import Registry, did_you_mean
from aang_core.turns import loading_turn

GROUP = "aang"
"""The entry-point group of plug-ins; the value of an entry point names the hooks module."""

_LOCAL = "aang_local_plugin_"
"""Beginning of the module names of plug-ins in a single file."""


DISABLE_VARIABLE = "AANG_DISABLE_PLUGINS"
LOAD_VARIABLE = "AANG_LOAD_PLUGINS"

SLOW = 0.2
"""Seconds: a plug-in that takes longer to load is a nuisance in every command."""

Status = Literal["ok", "disabled", "shadowed", "failed"]


@dataclass(frozen=True)
class PluginRecord:
    """The outcome of loading one plug-in.

    Attributes:
        origin: the plug-in.
        status: whether it was loaded, and if not, the kind of reason.
        error: why it is not loaded, in one line; None if it is.
        exception: the exception that it raised, if any.
        warnings: the deprecated hooks and arguments that it uses, and what to use instead, a line
            each.
        seconds: the time that importing it and running its hooks took.
    """

    origin: Origin
    status: Status
    error: str | None = None
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def notice(self) -> str:
        """A sentence for the user of a plug-in that is shadowed or has failed."""
        if self.status == "failed":
            return f"Plug-in {self} failed to load and registered nothing: {self.error}"
        return f"Plug-in {self} is not loaded: {self.error}"

    def __str__(self) -> str:
        return f"{self.origin.entry_point} ({self.origin})"


@dataclass(frozen=True)
class Plugins:
    """All plug-ins that were found, and what the loaded ones have registered.

    Attributes:
        registry: everything that is registered.
        records: what happened to each plug-in, in the order of loading.

    Examples:
        >>> from aang_core import load_plugins
        >>> plugins = load_plugins()
        >>> core = plugins.records[0]
        >>> core.origin.distribution, core.status
        ('aang-core', 'ok')
    """

    registry: Registry
    records: tuple[PluginRecord, ...]

    @property
    def failed(self) -> tuple[PluginRecord, ...]:
        """The plug-ins that could not be loaded."""
        return tuple(record for record in self.records if record.status == "failed")

    @property
    def shadowed(self) -> tuple[PluginRecord, ...]:
        """The plug-ins that are not loaded because another one has the same entry point."""
        return tuple(record for record in self.records if record.status == "shadowed")


@loading_turn()
def load_plugins(
    *,
    disable: Iterable[str] = (),
    local: Iterable[str] = (),
    only: Collection[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Plugins:
    """Find and load all plug-ins. A plug-in that fails is recorded; the others still load.

    Args:
        disable: names of entry points or distributions to leave out, in addition to those that the
            variable ``AANG_DISABLE_PLUGINS`` lists, separated by commas. Case and ``-_.`` make no
            difference, as for pip.
        local: plug-ins that are not installed, as files ``FILE.py`` or module names. They are
            loaded after those that ``AANG_LOAD_PLUGINS`` lists, separated by commas.
        only: the distributions whose plug-ins are loaded besides the core's own; None for all. A
            local plug-in goes by its file's or module's name.
        environ: where the two variables are read from.

    Raises:
        UnknownNameError: a name in ``disable`` fits no plug-in. Unknown names in the variable are
            ignored, because it may be set once for several environments.

    Examples:
        >>> from aang_core import load_plugins
        >>> plugins = load_plugins(disable=["aang-plugin-gpt"])
        >>> [str(record.origin) for record in plugins.records if record.status == "disabled"]
        ['aang-plugin-gpt ...']
    """
    disable = list(disable)
    candidates = find_candidates([*_listed(environ, LOAD_VARIABLE), *local])
    check_known(disable, (candidate.origin for candidate in candidates))
    disabled = set(map(normalised, (*disable, *_listed(environ, DISABLE_VARIABLE))))
    entries: list[Entry] = []
    records: list[PluginRecord] = []
    owners: dict[tuple[str, str], Origin] = {}
    for candidate in candidates:
        origin = candidate.origin
        if names := disabled & origin.names:
            reason = f"disabled by name: {', '.join(sorted(names))}"
            records.append(PluginRecord(origin, "disabled", reason))
        elif only is not None and origin.distribution not in {CORE, *only}:
            reason = f"left out: only {', '.join(sorted(only))} is loaded"
            records.append(PluginRecord(origin, "disabled", reason))
        elif candidate.slot in owners:
            first = owners[candidate.slot]
            reason = (
                f"{first} has the same entry point {origin.entry_point} and is loaded instead; "
                f"--disable-plugin {first.distribution} loads this one"
            )
            records.append(PluginRecord(origin, "shadowed", reason))
        else:
            owners[candidate.slot] = origin
            record, registered = _load(candidate)
            records.append(record)
            entries += registered
    absent = {
        record.origin.distribution: _ABSENT[record.status]
        for record in records
        if record.status != "ok"
    }
    return Plugins(Registry(entries, absent), tuple(records))


_ABSENT: Mapping[Status, str] = {
    "disabled": "disabled",
    "shadowed": "shadowed, see aang plugins",
    "failed": "broken, see aang plugins",
}
"""What the message about a missing name says about a plug-in that is not loaded."""


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
    """The plug-in that a module belongs to; None if it is not an installed or a local one's.

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
            # `point.module` raises on a value that names no module; loading reports that.
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
            module = partial(import_module, source)
            yield (
                _local_file(Path(source))
                if is_file
                else Candidate(Origin(source, "local", source), ("module", source), module)
            )


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
                    f"it imports {error.name} from its folder, which a plug-in in a single file "
                    "cannot do; put everything into the file, or install it as a package"
                ) from error
        raise
    return module


def _listed(environ: Mapping[str, str], variable: str) -> list[str]:
    return [part.strip() for part in environ.get(variable, "").split(",") if part.strip()]


def check_known(names: Iterable[str], origins: Iterable[Origin]) -> None:
    """Refuse a name that is neither the distribution nor the entry point of one of the plug-ins.

    Raises:
        UnknownNameError: it is not; the message offers similar names.
    """
    known = frozenset().union(*(origin.names for origin in origins))
    for name in names:
        if normalised(name) not in known:
            raise UnknownNameError(
                f"there is no plug-in {name}; {did_you_mean(name, known, 'there are')}"
            )


def _load(candidate: Candidate) -> tuple[PluginRecord, Iterable[Entry]]:
    """Import one plug-in and run its hooks; its registrations count only if all of them succeed."""
    origin = candidate.origin
    staging = Staging(origin)
    started = time.perf_counter()
    try:
        deprecations = _run_hooks(candidate, staging)
    # A plug-in may raise anything. Whatever it is, only this plug-in fails.
    except (Exception, SystemExit) as error:
        seconds = time.perf_counter() - started
        return PluginRecord(origin, "failed", _described(error, origin), error, (), seconds), ()
    seconds = time.perf_counter() - started
    record = PluginRecord(origin, "ok", warnings=deprecations, seconds=seconds)
    return record, staging.entries.values()


def _run_hooks(candidate: Candidate, staging: Staging) -> tuple[str, ...]:
    """Run the hooks of a plug-in.

    Returns:
        A line for each deprecated hook or argument that it uses.
    """
    module = candidate.load()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hooks = implemented_hooks(module)
    for name, hook in hooks.items():
        staging.run(name, hook)
    return tuple(f"{w.filename}:{w.lineno}: {w.message}" for w in caught)


def _described(error: BaseException, origin: Origin) -> str:
    """Describe an error in one line: where it happened, what it was, and what to do."""
    if isinstance(error, SyntaxError):
        place, said = f"{error.filename}:{error.lineno}", error.msg
    else:
        place, said = place_of(error), text_of(error)
    where = f"{place}: " if place else ""
    if isinstance(error, PluginError):
        return f"{where}{said}"
    what = f"{where}{type(error).__name__}{f': {said}' if said else ''}"
    if isinstance(error, ImportError):
        remedy = "Install what it needs into this environment, or leave the plug-in out with"
    else:
        remedy = "Report it to the plug-in's authors, or leave the plug-in out with"
    return f"{what}. {remedy} --disable-plugin {origin.entry_point}"


def plugin_differences(recorded: Mapping[str, Any], installed: Plugins) -> list[str]:
    """How the core and the plug-ins that a run used differ from those that are installed.

    Args:
        recorded: the content of the run's ``plugins.json``. Plug-ins that supplied no primitive to
            the run are ignored.
        installed: the plug-ins of this process.

    Returns:
        A sentence for each difference.
    """
    then = {p["distribution"]: p["version"] for p in recorded["plugins"] if p["status"] == "ok"}
    # A distribution may have several plug-ins; it is there if one of them is.
    now = {
        r.origin.distribution: r for r in sorted(installed.records, key=lambda r: r.status == "ok")
    }
    sentences = []
    for name in sorted({CORE, *recorded["primitives"].values()} & then.keys()):
        record = now.get(name)
        if record is None:
            state = "it is not installed now"
        elif record.status != "ok":
            state = f"it is {record.status} now; see aang plugins"
        elif record.origin.version != then[name]:
            state = f"installed is {record.origin.version}"
        else:
            continue
        sentences.append(f"the run used {name} {then[name]}; {state}")
    return sentences
