"""All checks of a plug-in as a whole."""

import inspect
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from aang.config import schema_of

from aang_core.errors import AangError, ConfigError, place_of, text_of
from aang_core.objectives.objective import Objective
from aang_core.objectives.space import load_space
from aang_core.plugins import load_plugins
from aang_core.plugins.loading import SLOW
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import PREFIX, Registry, did_you_mean
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.weighting import TaskCard
from aang_testing.alone import Alone, load_alone
from aang_testing.names import misspelled_traits, taken_names
from aang_testing.rows import SINGLE

Options = Mapping[str, Mapping[str, Any]]
"""Options of primitives and weighters, by name, as ``--set`` gives them to a training."""


@dataclass(frozen=True)
class Check:
    """One check; calling ``run`` raises an AssertionError or an AangError if it fails.

    Attributes:
        name: what is checked.
        run: the check itself.
        advice: what to do if it fails.
    """

    name: str
    run: Callable[[], object]
    advice: str


def checks_of(plugin: str, options: Options | None = None) -> list[Check]:
    """All checks of a plug-in.

    Other plug-ins play no part, except the standard ones and those that the plug-in depends on.

    Args:
        plugin: an installed distribution, its entry point, or a file ``FILE.py``.
        options: options to check its primitives and weighters with, by their names; defaults for
            all others.

    Raises:
        UnknownNameError: no such plug-in is installed.
        ConfigError: there are options for something that it does not register.
    """
    (checks,) = checks_of_each([plugin], options)
    return checks


def checks_of_each(plugins: Sequence[str], options: Options | None = None) -> list[list[Check]]:
    """All checks of several plug-ins, one list for each.

    Args:
        plugins: each as :func:`checks_of` takes it.
        options: options to check their primitives and weighters with, by name. Each plug-in gets
            those of what it registers.

    Raises:
        UnknownNameError: one of them is not installed.
        ConfigError: there are options for something that none of them registers.
    """
    loaded = [load_alone(plugin) for plugin in plugins]
    options = options or {}
    known = {primitive.name for alone in loaded for primitive in alone.primitives}
    owners = list(dict.fromkeys(alone.distribution for alone in loaded))
    has, registers = ("have", "they register") if owners[1:] else ("has", "it registers")
    # A plug-in that does not load might have registered it; that check fails anyway.
    if all(record.status == "ok" for alone in loaded for record in alone.records):
        for name in options.keys() - known:
            hint = did_you_mean(name, known, registers)
            raise ConfigError(f"--set {name}.…: {' and '.join(owners)} {has} no {name}; {hint}")
    return [list(_checks(alone, options)) for alone in loaded]


def warnings_of(plugin: str) -> list[str]:
    """What may be wrong with a plug-in although it keeps its contracts, a sentence each.

    Names that other plug-ins have too, and traits that look misspelt.

    Args:
        plugin: as :func:`checks_of` takes it.

    Raises:
        UnknownNameError: no such plug-in is installed.
    """
    alone = load_alone(plugin)
    everybody = load_plugins(local=alone.local).registry
    registered = everybody.primitives()
    own = [primitive for primitive in registered if primitive.origin in alone.origins]
    taken = [sentence for origin in alone.origins for sentence in taken_names(origin, everybody)]
    return [*taken, *misspelled_traits(own, registered)]


def _checks(alone: Alone, options: Options) -> Iterator[Check]:
    for record in alone.records:
        # Checks of a distribution with several entry points name theirs.
        point = f"{record.origin.entry_point}: " if alone.records[1:] else ""
        yield Check(
            f"{point}it loads",
            partial(_holds, record.status == "ok", str(record.error)),
            "the message says which hook or registration is wrong",
        )
        for warning in record.warnings:
            name = f"{point}it uses nothing deprecated"
            yield Check(name, partial(_holds, False, warning), "see the message")
    if any(record.status == "ok" for record in alone.records):
        yield from _of_loading(alone)
        for primitive in alone.primitives:
            given = primitive.with_options(options.get(primitive.name, {}))
            yield from _of_primitive(given, alone)
        yield from _of_names(alone)


def _of_loading(alone: Alone) -> list[Check]:
    def light() -> None:
        burden = alone.burden
        _holds(not burden.error, burden.error)
        _holds(not burden.heavy, f"with it loaded, {' '.join(burden.heavy)} is imported")

    def quick() -> None:
        seconds = alone.burden.seconds
        told = f"{alone.distribution} takes {seconds:.2f} s to load, in every command"
        _holds(seconds <= SLOW, told)

    advice = 'register targets as "module:Class", and import {} in that module alone'
    return [
        Check("registering imports nothing heavy", light, advice.format("torch")),
        Check(f"it loads in {SLOW} s", quick, advice.format("what takes long")),
    ]


def _of_primitive(primitive: Primitive, alone: Alone) -> Iterator[Check]:
    what = f"{primitive.stage} {primitive.name}"
    given = ", ".join(f"{name}={value!r}" for name, value in primitive.options.items())
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
    if primitive.requires:
        yield Check(
            f"{what}: somebody provides what it requires",
            lambda: _provided(primitive, alone),
            "correct the trait, register a primitive that provides it, or depend on a plug-in "
            "that does",
        )
    if primitive.stage != "weighter":
        problem = _problem(primitive, primitive.make)
        yield Check(
            f"{what}: it can be made {f'with {given}' if given else 'without options'}",
            partial(_holds, not problem, problem),
            f"give every option a default, or check it with --set {primitive.name}.OPTION=VALUE",
        )
        if problem:
            return
        yield Check(
            f"{what}: it can be pickled",
            lambda: _passes(primitive, lambda: pickle.loads(pickle.dumps(primitive.make()))),
            "keep no lambdas, locks or open files in it",
        )
    traits = "" if primitive.stage == "weighter" else ", traits included"
    yield Check(
        f"{what}: its contract{traits}{f', with {given}' if given else ''}",
        lambda: _passes(primitive, lambda: _check(primitive)),
        "the message says what was expected and found; aang_testing has the same check",
    )


def in_words(primitive: Primitive, error: BaseException) -> str:
    """What went wrong in a check of a primitive: one failure, with file and line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message = text_of(error).split(" Falsifying example:")[0]
    if isinstance(error, AangError):
        # The author reads this, and needs neither the name of the plug-in nor how to disable it.
        before, after = str(primitive.fault("\0")).split("\0")
        message = message.removeprefix(before).removesuffix(after)
    elif not isinstance(error, AssertionError):
        message = f"{type(error).__name__}: {message}"
    place = place_of(error) or place_of(error.__cause__ or error) or _defined_at(primitive)
    return message if not place or place in message else f"{message} ({place})"


def _defined_at(primitive: Primitive) -> str:
    """``FILE:LINE`` of the target; empty if it has none."""
    try:
        target = inspect.unwrap(primitive.load())
        _, line = inspect.getsourcelines(target)
        return f"{inspect.getsourcefile(target)}:{line}"
    except (AangError, OSError, TypeError):
        return ""


def _provided(primitive: Primitive, alone: Alone) -> None:
    sentences = alone.plugins.registry.unprovided_traits([primitive])
    _holds(not sentences, "; ".join(sentences))


def _problem(primitive: Primitive, check: Callable[[], object]) -> str:
    """What is wrong with a primitive, in one sentence; empty if the check passes."""
    try:
        check()
    # The primitive is somebody else's code and may raise anything.
    except (Exception, SystemExit) as error:
        return in_words(primitive, error)
    return ""


def _passes(primitive: Primitive, check: Callable[[], object]) -> None:
    problem = _problem(primitive, check)
    _holds(not problem, problem)


def _check(primitive: Primitive) -> None:
    import aang_testing as testing

    match primitive.stage:
        case "data":
            testing.check_data(primitive.make(), primitive.provides)
        case "transform":
            testing.check_transform(primitive.make(), primitive.provides)
        case "representation":
            testing.check_representation(primitive.make(), primitive.provides)
        case "output":
            labelled = any(trait.startswith("labels:") for trait in primitive.requires)
            kinds = (t.removeprefix(PREFIX) for t in primitive.requires if t.startswith(PREFIX))
            kind = next(kinds, SINGLE)
            testing.check_output(primitive.make(), kind=kind)
            if not labelled:
                testing.check_output(primitive.make(), labelled=False, kind=kind)
        case "weighter":
            others = [TaskCard(name, {"transform": name}) for name in ("first", "second")]
            CheckedWeighter.make(primitive, TaskCard("end"), others, {})
            testing.check_weighter(primitive.make)


def _of_names(alone: Alone) -> Iterator[Check]:
    """Checks of the spaces and named objectives, which list primitives by name."""
    registry = alone.plugins.registry
    for space in registry.spaces:
        if space.origin in alone.origins:
            yield Check(
                f"space {space.name}: it has objectives",
                partial(_has_objectives, f"{alone.distribution}:{space.name}", registry),
                "aang show-space says why combinations are dropped; depend on the plug-ins whose "
                "primitives it lists",
            )
    for entry in registry.objectives:
        if entry.origin in alone.origins:
            theirs = registry.as_meant_by(alone.distribution)
            yield Check(
                f"objective {entry.name}: it is legal",
                partial(_all_legal, entry.objectives, theirs),
                "correct its four names, or the traits of its primitives; depend on the plug-ins "
                "that supply them",
            )
    if any(option.origin in alone.origins for option in registry.options):
        yield Check(
            "its options fit into aang train",
            lambda: schema_of(registry),
            "give each a name that aang train does not have, and a type that pydantic validates",
        )


def _has_objectives(space: str, registry: Registry) -> None:
    found = load_space(space, registry)
    _holds(bool(found.objectives), "; ".join(["no combination is legal", *found.notes]))


def _all_legal(objectives: tuple[str, ...], registry: Registry) -> None:
    for objective in objectives:
        try:
            reason = Objective.parse(objective, registry).illegal_because
        except AangError as error:
            reason = str(error)
        _holds(reason is None, f"{objective}: {reason}")


def _holds(kept: bool, message: str) -> None:
    if not kept:
        raise AssertionError(message)


def require_path(plugin: str) -> str:
    """The plug-in in the form that :func:`checks_of` takes; a folder stands for its distribution.

    Raises:
        ConfigError: the folder contains no distribution, or one that is not installed.
    """
    folder = Path(plugin)
    if not folder.is_dir():
        return plugin
    project = folder / "pyproject.toml"
    if not project.is_file():
        raise ConfigError(f"{plugin}: has no pyproject.toml; give a distribution or a FILE.py")
    import tomllib

    try:
        name = str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["name"])
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{project}: has no project name: {error}") from error
    try:
        distribution(name)
    except PackageNotFoundError as error:
        raise ConfigError(
            f"{plugin}: {name} is not installed in this environment; pip install -e {plugin}"
        ) from error
    return name
