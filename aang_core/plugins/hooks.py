"""Checks the hooks of a plug-in, and stages what they register until all have run."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partialmethod
from os import PathLike
from pathlib import Path
from typing import Any

import pluggy

from aang_core import hookspecs
from aang_core.errors import PluginError
from aang_core.plugins.primitive import (
    CandidateEntry,
    Entry,
    GridEntry,
    HookEntry,
    ObjectiveEntry,
    OptionEntry,
    Origin,
    Primitive,
    RecipeEntry,
    SpaceEntry,
    Stage,
    TargetEntry,
)
from aang_core.plugins.registry import did_you_mean

PLUGIN_API = 1
"""The version of the plug-in interface.

It is increased when plug-ins written for the previous version would no longer work.
"""

DECLARATION = "AANG_PLUGIN_API"
"""Name of the constant with which a plug-in's module declares the version it was written for."""


_NAME = re.compile(r"[a-z0-9-]+")
# Spaces and recipes may be combinations, such as td+ed and dapt+tapt.
_SUM_NAME = re.compile(r"[a-z0-9+-]+")
_OPTION_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TRAIT = re.compile(r"[a-z0-9-]+(:[a-z0-9-]+)*")
_TARGET = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")


def hook_names() -> list[str]:
    """The names of all hooks, in the order of the hook specs."""
    return [name for name, value in vars(hookspecs).items() if hasattr(value, "aang_spec")]


def implemented_hooks(plugin: object) -> dict[str, pluggy.HookImpl]:
    """The hooks that ``plugin``, a module or an object, implements, in the order of the specs.

    pluggy warns about hooks whose spec has ``warn_on_impl``, and about arguments that the spec
    lists in ``warn_on_impl_args``.

    Raises:
        PluginError: it was written for another version of the interface, a function looks like a
            hook but is not one (misspelled, undecorated, or with other arguments than its spec), or
            there is no hook at all.
    """
    check_plugin_api(plugin)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from error
    known, found = hook_names(), {}
    for caller in manager.get_hookcallers(plugin) or []:
        (hook,) = caller.get_hookimpls()
        function = inspect.unwrap(hook.function)
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            what = f"{caller.name} must be a plain function, without yield or async"
            raise _wrong(function, what)
        if caller.has_spec():
            found[caller.name] = hook
        # optionalhook is pluggy's way to say that an older core may not know the hook.
        elif not hook.optionalhook:
            hint = did_you_mean(caller.name, known, "the hooks are")
            raise _wrong(hook.function, f"there is no hook {caller.name}; {hint}")
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        like_a_hook = name.startswith("aang_") and inspect.isroutine(function)
        if like_a_hook and not hasattr(function, "aang_impl"):
            raise _wrong(
                function,
                f"{name} is not decorated, so it would never be called; put @hookimpl above it "
                "(from aang_core import hookimpl), or rename it",
            )
    if not found:
        raise PluginError(
            "it implements no hook; check that the entry point names the module with the "
            "functions decorated with @hookimpl"
        )
    return {name: found[name] for name in known if name in found}


def check_plugin_api(module: object) -> None:
    """Refuse a plug-in that was written for another version; one without a declaration may load.

    Raises:
        PluginError: the versions differ.
    """
    written_for = getattr(module, DECLARATION, PLUGIN_API)
    if written_for != PLUGIN_API:
        raise PluginError(
            f"it was written for version {written_for} of the plug-in interface, and this core has "
            f"version {PLUGIN_API}; update the older of the two. Its authors declare the version "
            f"with {DECLARATION} = {PLUGIN_API}"
        )


def _wrong(function: Any, what: str) -> PluginError:
    """An error that begins with ``FILE:LINE`` of the function, if known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
    return PluginError(f"{place}: {what}")


class Staging:
    """What one plug-in registers, validated.

    For every hook that registers it has a method of the same name, which the hook receives as
    ``register``. Each raises :class:`PluginError` for an invalid argument, and for a name that is
    registered twice.

    Attributes:
        entries: the registrations in order, by kind and name.
    """

    def __init__(self, origin: Origin) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        self._origin = origin

    def run(self, name: str, hook: pluggy.HookImpl) -> None:
        """Call a hook if it registers something; keep it if it is called later."""
        if name.startswith("aang_register_"):
            hook.function(**dict.fromkeys(hook.argnames, getattr(self, name)))
        else:
            entry = HookEntry(name, "", self._origin, hook.function, tuple(hook.argnames))
            self.entries["hook", name] = entry

    def _primitive(
        self,
        stage: Stage,
        name: str,
        summary: str,
        target: str | Callable[..., Any],
        *,
        provides: Iterable[str] = (),
        requires: Iterable[str] = (),
    ) -> None:
        what = f"{stage} {name!r}"
        traits = _traits(provides, f"{what}: provides"), _traits(requires, f"{what}: requires")
        self._add(stage, Primitive(name, summary, self._origin, stage, target, *traits))

    aang_register_data = partialmethod(_primitive, "data")
    aang_register_transforms = partialmethod(_primitive, "transform")
    aang_register_representations = partialmethod(_primitive, "representation")
    aang_register_outputs = partialmethod(_primitive, "output")
    aang_register_weighters = partialmethod(_primitive, "weighter")

    def _target(self, kind: str, name: str, summary: str, target: str | Callable[..., Any]) -> None:
        self._add(kind, TargetEntry(name, summary, self._origin, kind, target))

    aang_register_commands = partialmethod(_target, "command")
    aang_register_engines = partialmethod(_target, "gradient engine")
    aang_register_dev_heads = partialmethod(_target, "dev head")
    aang_register_task_types = partialmethod(_target, "kind of end task")
    aang_register_tasks = partialmethod(_target, "end task")

    def aang_register_spaces(
        self, name: str, summary: str, source: str | PathLike[str] | Mapping[str, Any]
    ) -> None:
        found = source if isinstance(source, Mapping) else Path(source)
        self._add("space", SpaceEntry(name, summary, self._origin, found), _SUM_NAME)

    def aang_register_objectives(self, name: str, summary: str, *objectives: str) -> None:
        self._add("objective", ObjectiveEntry(name, summary, self._origin, objectives))

    def aang_register_recipes(
        self,
        name: str,
        summary: str,
        *,
        pretraining: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        stages = _several(pretraining, f"recipe {name!r}: pretraining")
        entry = RecipeEntry(name, summary, self._origin, stages, dict(options or {}))
        self._add("recipe", entry, _SUM_NAME)

    def aang_register_grids(
        self, name: str, summary: str, options: Mapping[str, Iterable[Any]]
    ) -> None:
        tried = {o: _several(values, f"grid {name!r}: {o}") for o, values in options.items()}
        self._add("grid", GridEntry(name, summary, self._origin, tried))

    def aang_register_candidates(
        self,
        name: str,
        summary: str,
        target: str | Callable[..., Any] | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        needs: str = "",
        cost: float | None = None,
    ) -> None:
        _require(
            (target is None) != (options is None),
            f"candidate {name!r}: give either a target or options of aang train",
        )
        cost = float(target is None) if cost is None else cost
        entry = CandidateEntry(
            name, summary, self._origin, "candidate", target, dict(options or {}), needs, cost
        )
        self._add("candidate", entry, _SUM_NAME)

    def aang_register_options(
        self,
        name: str,
        summary: str,
        type: Any,
        *,
        default: Any = None,
        goes_with: str | None = None,
        reporting: bool = False,
    ) -> None:
        entry = OptionEntry(
            name, summary, self._origin, "option", type, default, goes_with, reporting
        )
        self._add("option", entry, _OPTION_NAME)

    def _add(self, kind: str, entry: Entry, form: re.Pattern[str] = _NAME) -> None:
        name, summary, what = entry.name, entry.summary, f"{kind} {entry.name!r}"
        _require(_matches(form, name), f"{what}: the name must match {form.pattern}; rename it")
        # Printed unchanged, so a line break or a control code would garble every listing.
        _require(
            isinstance(summary, str) and bool(summary.strip()) and summary.isprintable(),
            f"{what}: the summary must be one line of text, not {summary!r}",
        )
        if isinstance(entry, TargetEntry) and isinstance(entry.target, str):
            fits = _matches(_TARGET, entry.target)
            _require(fits, f"{what}: {entry.target!r} must read 'module:object'")
        _require(
            (kind, name) not in self.entries,
            f"{what} is registered twice; rename one of the two or remove it",
        )
        self.entries[kind, name] = entry


def _require(kept: bool, otherwise: str) -> None:
    if not kept:
        raise PluginError(otherwise)


def _matches(form: re.Pattern[str], name: object) -> bool:
    return isinstance(name, str) and form.fullmatch(name) is not None


def _several(values: object, what: str) -> tuple[Any, ...]:
    # A string is iterable too, which yields its letters: ("text") is often meant as ("text",).
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PluginError(f"{what} must be a tuple or a list, not {values!r}; mind the comma")
    return tuple(values)


def _traits(traits: object, what: str) -> frozenset[str]:
    found = _several(traits, what)
    for trait in found:
        fits = _matches(_TRAIT, trait)
        _require(fits, f"{what} holds {trait!r}; a trait reads like text or labels:end-task")
    return frozenset(found)
