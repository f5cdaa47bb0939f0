"""All checks of a plug-in as a whole."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from aang.config import schema_of

from aang_core.errors import AangError, ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.space import load_space
from aang_core.plugins import load_plugins
from aang_core.plugins.loading import SLOW
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import Registry
from aang_core.plugins.traits import unprovided_traits
from aang_testing.alone import Alone, load_alone
from aang_testing.authoring.names import misspelled_traits, taken_names
from aang_testing.first_call import call_once, in_words, kind_of

Options = Mapping[str, Mapping[str, Any]]
"""Options of primitives and weighters, by name, as ``--set`` gives them to a training."""


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
        options: options to check their primitives and weighters with, by their names. Every plug-in
            gets those of what it registers.

    Raises:
        UnknownNameError: one of them is not installed.
        ConfigError: there are options for something that none of them registers.
    """
    loaded = [load_alone(plugin) for plugin in plugins]
    _require_registered(options or {}, [alone for plugin in loaded for alone in plugin])
    return [_checks(plugin, options or {}) for plugin in loaded]


def _checks(plugin: Sequence[Alone], options: Options) -> list[Check]:
    """All checks of a plug-in; those of a distribution with several entry points name them."""

    def named(checks: Iterable[Check], alone: Alone) -> list[Check]:
        if len(plugin) == 1:
            return list(checks)
        point = alone.record.origin.entry_point
        return [replace(check, name=f"{point}: {check.name}") for check in checks]

    usable = [alone for alone in plugin if alone.record.status == "ok"]
    found = [check for alone in plugin for check in named([_of_outcome(alone)], alone)]
    # Every command loads all entry points of a distribution, so what they cost is one sum.
    found += [check for alone in usable[:1] for check in _of_loading(alone)]
    for alone in usable:
        primitives = _primitives(alone, options)
        of_primitives = [check for p in primitives for check in _of_primitive(p, alone)]
        found += named([*_deprecated(alone), *of_primitives, *_of_names(alone)], alone)
    return found


def warnings_of(plugin: str) -> list[str]:
    """What may be wrong with a plug-in although it keeps its contracts, a sentence each.

    Names that other plug-ins have too, and traits that look misspelt.

    Args:
        plugin: as :func:`checks_of` takes it.

    Raises:
        UnknownNameError: no such plug-in is installed.
    """
    usable = [alone for alone in load_alone(plugin) if alone.record.status == "ok"]
    return [warning for alone in usable for warning in _warnings(alone)]


def _warnings(alone: Alone) -> list[str]:
    origin = alone.record.origin
    everybody = load_plugins(local=alone.local).registry
    registered = everybody.primitives()
    own = [primitive for primitive in registered if primitive.origin == origin]
    return [*taken_names(origin, everybody), *misspelled_traits(own, registered)]


def _of_outcome(alone: Alone) -> Check:
    return Check(
        "it loads",
        lambda: _holds(alone.record.status == "ok", str(alone.record.error)),
        "the message says which hook or registration is wrong",
    )


def _deprecated(alone: Alone) -> list[Check]:
    return [
        Check("it uses nothing deprecated", partial(_holds, False, warning), "see the message")
        for warning in alone.record.warnings
    ]


def _of_loading(alone: Alone) -> list[Check]:
    def light() -> None:
        burden = alone.burden
        _holds(not burden.error, burden.error)
        _holds(not burden.heavy, f"with it loaded, {' '.join(burden.heavy)} is imported")

    def quick() -> None:
        seconds = alone.burden.seconds
        name = alone.record.origin.distribution
        _holds(seconds <= SLOW, f"{name} takes {seconds:.2f} s to load, in every command")

    advice = 'register targets as "module:Class", and import {} in that module alone'
    return [
        Check("registering imports nothing heavy", light, advice.format("torch")),
        Check(f"it loads in {SLOW} s", quick, advice.format("what takes long")),
    ]


def _own(alone: Alone) -> list[Primitive]:
    """The primitives that the plug-in registers."""
    origin = alone.record.origin
    return [p for p in alone.plugins.registry.primitives() if p.origin == origin]


def _primitives(alone: Alone, options: Options) -> list[Primitive]:
    """The primitives of the plug-in, with the options for them."""
    return [p.with_options(options.get(p.name, {})) for p in _own(alone)]


def _require_registered(options: Options, plugins: Sequence[Alone]) -> None:
    """Refuse options for something that none of the plug-ins registers."""
    if any(alone.record.status != "ok" for alone in plugins):
        # It might have registered that; the check that it loads fails anyway.
        return
    known = {primitive.name for alone in plugins for primitive in _own(alone)}
    owners = list(dict.fromkeys(alone.record.origin.distribution for alone in plugins))
    has, registers = ("have", "they register") if owners[1:] else ("has", "it registers")
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known, registers)
            raise ConfigError(f"--set {name}.…: {' and '.join(owners)} {has} no {name}; {hint}")


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


def _provided(primitive: Primitive, alone: Alone) -> None:
    sentences = unprovided_traits([primitive], alone.plugins.registry.primitives())
    _holds(not sentences, "; ".join(sentences))


def _problem(primitive: Primitive, check: Callable[[], object]) -> str:
    """What is wrong with a primitive, in one sentence; empty if the check passes."""
    try:
        check()
    except KeyboardInterrupt:
        raise
    # The primitive is somebody else's code and may raise anything, including SystemExit.
    except BaseException as error:
        return in_words(primitive, error)
    return ""


def _passes(primitive: Primitive, check: Callable[[], object]) -> None:
    problem = _problem(primitive, check)
    _holds(not problem, problem)


def _check(primitive: Primitive) -> None:
    import aang_testing as testing

    call_once(primitive)
    match primitive.stage:
        case "data":
            testing.check_data(primitive.make(), primitive.provides)
        case "transform":
            testing.check_transform(primitive.make(), primitive.provides)
        case "representation":
            testing.check_representation(primitive.make(), primitive.provides)
        case "output":
            labelled = any(trait.startswith("labels:") for trait in primitive.requires)
            kind = kind_of(primitive)
            testing.check_output(primitive.make(), kind=kind)
            if not labelled:
                testing.check_output(primitive.make(), labelled=False, kind=kind)
        case "weighter":
            testing.check_weighter(primitive.make)


def _of_names(alone: Alone) -> Iterator[Check]:
    """Checks of the spaces and named objectives, which list primitives by name."""
    registry, origin = alone.plugins.registry, alone.record.origin
    for space in registry.spaces:
        if space.origin == origin:
            yield Check(
                f"space {space.name}: it has objectives",
                partial(_has_objectives, f"{origin.distribution}:{space.name}", alone),
                "aang show-space says why combinations are dropped; depend on the plug-ins whose "
                "primitives it lists",
            )
    for entry in registry.objectives:
        if entry.origin == origin:
            yield Check(
                f"objective {entry.name}: it is legal",
                partial(_all_legal, entry.objectives, alone),
                "correct its four names, or the traits of its primitives; depend on the plug-ins "
                "that supply them",
            )
    if any(option.origin == origin for option in registry.options):
        yield Check(
            "its options fit into aang train",
            partial(_options_fit, registry),
            "give each a name that aang train does not have, and a type that pydantic validates",
        )


def _has_objectives(space: str, alone: Alone) -> None:
    try:
        found = load_space(space, alone.plugins.registry)
    except AangError as error:
        raise AssertionError(str(error)) from error
    _holds(bool(found.objectives), "; ".join(["no combination is legal", *found.notes]))


def _all_legal(objectives: tuple[str, ...], alone: Alone) -> None:
    theirs = alone.plugins.registry.as_meant_by(alone.record.origin.distribution)
    for objective in objectives:
        try:
            reason = Objective.parse(objective, theirs).illegal_because
        except AangError as error:
            reason = str(error)
        _holds(reason is None, f"{objective}: {reason}")


def _options_fit(registry: Registry) -> None:
    try:
        schema_of(registry)
    except AangError as error:
        raise AssertionError(str(error)) from error


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
