"""Collects what one plug-in registers until all its hooks have run."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from aang_core.errors import PluginError
from aang_core.plugins.primitive import Origin, Primitive, Stage
from aang_core.plugins.registry import (
    Entry,
    GridEntry,
    HookEntry,
    ObjectiveEntry,
    OptionEntry,
    RecipeEntry,
    SpaceEntry,
    TargetEntry,
    TargetKind,
)

_NAME = re.compile(r"[a-z0-9-]+")
# Spaces and recipes may be combinations, such as td+ed and dapt+tapt.
_SUM_NAME = re.compile(r"[a-z0-9+-]+")
_OPTION_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TRAIT = re.compile(r"[a-z0-9-]+(:[a-z0-9-]+)*")
_TARGET = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")

_STAGE_HOOKS: Mapping[str, Stage] = {
    "aang_register_data": "data",
    "aang_register_transforms": "transform",
    "aang_register_representations": "representation",
    "aang_register_outputs": "output",
    "aang_register_weighters": "weighter",
}

_TARGET_HOOKS: Mapping[str, TargetKind] = {
    "aang_register_commands": "command",
    "aang_register_engines": "gradient engine",
    "aang_register_dev_heads": "dev head",
    "aang_register_task_types": "kind of end task",
    "aang_register_tasks": "end task",
}


class Staging:
    """Collects and validates the registrations of one plug-in.

    Every method that registers raises :class:`PluginError` for an invalid argument, and for a name
    that is registered twice.

    Attributes:
        entries: the registrations in order, by kind and name.
    """

    def __init__(self, origin: Origin) -> None:
        self.entries: dict[tuple[str, str], Primitive | Entry] = {}
        self._origin = origin

    def register_for(self, hook: str) -> Callable[..., None]:
        """The ``register`` function for the hook of that name."""
        if hook in _STAGE_HOOKS:
            return partial(self._primitive, _STAGE_HOOKS[hook])
        if hook in _TARGET_HOOKS:
            return partial(self._target, _TARGET_HOOKS[hook])
        others: dict[str, Callable[..., None]] = {
            "aang_register_spaces": self._space,
            "aang_register_objectives": self._objective,
            "aang_register_recipes": self._recipe,
            "aang_register_grids": self._grid,
            "aang_register_options": self._option,
        }
        return others[hook]

    def keep(self, hook: str, call: Callable[..., Any]) -> None:
        """Keep the implementation of a hook that is called later."""
        self.entries["hook", hook] = HookEntry(hook, "", self._origin, call)

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
        self._add(stage, Primitive(stage, name, summary, target, *traits, self._origin))

    def _target(
        self, kind: TargetKind, name: str, summary: str, target: str | Callable[..., Any]
    ) -> None:
        self._add(kind, TargetEntry(name, summary, self._origin, kind, target))

    def _space(
        self, name: str, summary: str, source: str | PathLike[str] | Mapping[str, Any]
    ) -> None:
        found = source if isinstance(source, Mapping) else Path(source)
        self._add("space", SpaceEntry(name, summary, self._origin, found), _SUM_NAME)

    def _objective(self, name: str, summary: str, *objectives: str) -> None:
        self._add("objective", ObjectiveEntry(name, summary, self._origin, objectives))

    def _recipe(
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

    def _grid(self, name: str, summary: str, options: Mapping[str, Iterable[Any]]) -> None:
        tried = {o: _several(values, f"grid {name!r}: {o}") for o, values in options.items()}
        self._add("grid", GridEntry(name, summary, self._origin, tried))

    def _option(
        self,
        name: str,
        summary: str,
        type: Any,
        *,
        default: Any = None,
        goes_with: str | None = None,
        reporting: bool = False,
    ) -> None:
        fits = not isinstance(type, str) or _matches(_TARGET, type)
        _require(fits, f"option {name!r}: the type must read 'module:object', not {type!r}")
        entry = OptionEntry(name, summary, self._origin, type, default, goes_with, reporting)
        self._add("option", entry, _OPTION_NAME)

    def _add(self, kind: str, entry: Primitive | Entry, form: re.Pattern[str] = _NAME) -> None:
        name, summary, what = entry.name, entry.summary, f"{kind} {entry.name!r}"
        _require(_matches(form, name), f"{what}: the name must match {form.pattern}; rename it")
        # Printed unchanged, so a line break or a control code would garble every listing.
        _require(
            isinstance(summary, str) and bool(summary.strip()) and summary.isprintable(),
            f"{what}: the summary must be one line of text, not {summary!r}",
        )
        if isinstance(entry, Primitive | TargetEntry):
            _require(
                callable(entry.target) or _matches(_TARGET, entry.target),
                f"{what}: the target must be callable or read 'module:object', not "
                f"{entry.target!r}",
            )
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
