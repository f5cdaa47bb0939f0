"""All checks of a plug-in as a whole."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aang_core.errors import AangError, ConfigError, UnknownNameError
from aang_core.objectives.objective import Objective
from aang_core.objectives.space import load_space
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.loading import PluginRecord
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive

HEAVY = ("torch", "transformers", "sklearn")


@dataclass(frozen=True)
class Check:
    """One check; calling ``run`` raises an AssertionError if it fails.

    Attributes:
        name: what is checked.
        run: the check itself.
        advice: what to do if it fails.
    """

    name: str
    run: Callable[[], None]
    advice: str


def checks_of(plugin: str) -> list[Check]:
    """All checks of a plug-in: an installed distribution, its entry point, or a file ``FILE.py``.

    Raises:
        UnknownNameError: no such plug-in is installed.
    """
    local = [plugin] if plugin.endswith(".py") else []
    plugins = load_plugins(local=local)
    record = _record(plugin, plugins)
    loads = Check(
        "it loads",
        lambda: _holds(record.status == "ok", str(record.error)),
        "the message says which hook or registration is wrong",
    )
    light = Check(
        "registering imports nothing heavy",
        lambda: _imports_nothing_heavy(local),
        'register targets as "module:Class", and import torch in that module alone',
    )
    if record.status != "ok":
        return [loads]
    deprecated = [
        Check("it uses nothing deprecated", partial(_holds, False, warning), "see the message")
        for warning in record.warnings
    ]
    return [loads, light, *deprecated, *_of_entries(record, plugins)]


def _record(plugin: str, plugins: Plugins) -> PluginRecord:
    if plugin.endswith(".py"):
        return plugins.records[-1]
    known: dict[str, PluginRecord] = {}
    for record in plugins.records:
        known[record.origin.distribution] = known[record.origin.entry_point] = record
    if plugin not in known:
        hint = did_you_mean(plugin, known, "there are")
        raise UnknownNameError(f"there is no plug-in {plugin}; {hint}")
    return known[plugin]


def _of_entries(record: PluginRecord, plugins: Plugins) -> Iterator[Check]:
    registry = plugins.registry
    for primitive in registry.primitives():
        if primitive.origin == record.origin:
            yield from _of_primitive(primitive)
    for space in registry.spaces:
        if space.origin == record.origin:
            name = f"{record.origin.distribution}:{space.name}"
            yield Check(
                f"space {space.name}: it has objectives",
                lambda name=name: _holds(  # type: ignore[misc]
                    bool(load_space(name, registry).objectives), "no combination is legal"
                ),
                "aang show-space says why combinations are dropped",
            )
    for entry in registry.objectives:
        if entry.origin == record.origin:
            yield Check(
                f"objective {entry.name}: it is legal",
                lambda entry=entry: _all_legal(entry.objectives, plugins),  # type: ignore[misc]
                "correct its four names, or the traits of its primitives",
            )


def _of_primitive(primitive: Primitive) -> Iterator[Check]:
    what = f"{primitive.stage} {primitive.name}"
    try:
        primitive.load()
    except AangError as error:
        # All further checks of the primitive would fail for the same reason.
        yield Check(
            f"{what}: its target can be imported",
            partial(_holds, False, str(error)),
            'register an object that exists: the class itself, or "module:Class"',
        )
        return
    if primitive.stage == "weighter":
        yield Check(f"{what}: its contract", lambda: _check(primitive), _CONTRACT)
        return
    yield Check(
        f"{what}: it can be made without options",
        lambda: _made(primitive),
        "give every option a default",
    )
    yield Check(
        f"{what}: it can be pickled",
        lambda: _pickled(primitive),
        "keep no lambdas, locks or open files in it",
    )
    yield Check(f"{what}: its contract, traits included", lambda: _check(primitive), _CONTRACT)


_CONTRACT = "the message says what was expected and found; aang_core.testing has the same check"


def _made(primitive: Primitive) -> None:
    try:
        primitive.make()
    except AangError as error:
        raise AssertionError(str(error)) from error


def _pickled(primitive: Primitive) -> None:
    try:
        pickle.loads(pickle.dumps(primitive.make()))
    # An object's own reducers may raise anything, and that only means that this check failed.
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def _check(primitive: Primitive) -> None:
    from aang_core import testing

    match primitive.stage:
        case "data":
            testing.check_data(primitive.make(), primitive.provides)
        case "transform":
            testing.check_transform(primitive.make(), primitive.provides)
        case "representation":
            testing.check_representation(primitive.make(), primitive.provides)
        case "output":
            labelled = any(trait.startswith("labels:") for trait in primitive.requires)
            testing.check_output(primitive.make())
            if not labelled:
                testing.check_output(primitive.make(), labelled=False)
        case "weighter":
            testing.check_weighter(primitive.make)


def _imports_nothing_heavy(local: list[str]) -> None:
    """Runs in a process of its own, since torch may already be imported in this one."""
    code = (
        "import sys; from aang_core.plugins import load_plugins; "
        f"load_plugins(local={local!r}); "
        f"print(*[m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    _holds(done.returncode == 0, done.stderr.strip()[-500:])
    _holds(not done.stdout.strip(), f"with all plug-ins loaded, {done.stdout.strip()} is imported")


def _all_legal(objectives: tuple[str, ...], plugins: Plugins) -> None:
    for objective in objectives:
        try:
            reason = Objective.parse(objective, plugins.registry).illegal_because
        except AangError as error:
            reason = str(error)
        _holds(reason is None, f"{objective}: {reason}")


def _holds(kept: bool, message: str) -> None:
    if not kept:
        raise AssertionError(message)


def require_path(plugin: str) -> str:
    """The plug-in in the form that :func:`checks_of` takes; a folder stands for its distribution.

    Raises:
        ConfigError: the folder contains no distribution.
    """
    folder = Path(plugin)
    if not folder.is_dir():
        return plugin
    project = folder / "pyproject.toml"
    if not project.is_file():
        raise ConfigError(f"{plugin}: has no pyproject.toml; give a distribution or a FILE.py")
    import tomllib

    try:
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["name"])
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{project}: has no project name: {error}") from error
