"""Collects what one plug-in registers until all its hooks have run."""

import re
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core.errors import PluginError
from aang_core.plugins.primitive import Origin, Primitive, Stage
from aang_core.plugins.registry import (
    CommandEntry,
    Entry,
    GridEntry,
    HookEntry,
    ObjectiveEntry,
    RecipeEntry,
    SpaceEntry,
)

if TYPE_CHECKING:
    import click

    from aang_core.hookspecs import RegisterPrimitive

_NAME = re.compile(r"[a-z0-9-]+")
# Spaces and recipes may be combinations, such as td+ed and dapt+tapt.
_SUM_NAME = re.compile(r"[a-z0-9+-]+")
_TRAIT = re.compile(r"[a-z0-9-]+(:[a-z0-9-]+)*")
_TARGET = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")

_STAGE_HOOKS: Mapping[str, Stage] = {
    "aang_register_data": "data",
    "aang_register_transforms": "transform",
    "aang_register_representations": "representation",
    "aang_register_outputs": "output",
    "aang_register_weighters": "weighter",
}


class Staging:
    """Collects and validates the registrations of one plug-in.

    Every method that registers raises :class:`PluginError` for an invalid argument, for a name that
    is registered twice, and when the staging is closed.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._entries: dict[tuple[str, str], Entry] = {}
        self._closed = False

    def close(self) -> list[Entry]:
        """Return all registrations in order, and refuse further ones."""
        self._closed = True
        return list(self._entries.values())

    def register_for(self, hook: str) -> Callable[..., None]:
        """The ``register`` function for the hook of that name."""
        if hook in _STAGE_HOOKS:
            return self._primitive_of(_STAGE_HOOKS[hook])
        others: dict[str, Callable[..., None]] = {
            "aang_register_spaces": self._space,
            "aang_register_objectives": self._objective,
            "aang_register_recipes": self._recipe,
            "aang_register_commands": self._command,
            "aang_register_grids": self._grid,
        }
        return others[hook]

    def keep(self, hook: str, call: Callable[..., Any]) -> None:
        """Keep the implementation of a hook that is called later."""
        self._add("hook", HookEntry(hook, call, self._origin))

    def _primitive_of(self, stage: Stage) -> "RegisterPrimitive":
        def register(
            name: str,
            summary: str,
            target: str | Callable[..., Any],
            *,
            provides: Iterable[str] = (),
            requires: Iterable[str] = (),
        ) -> None:
            what = f"{stage} {name!r}"
            _check_name(name, what, _NAME)
            _check_summary(summary, what)
            _check_target(target, what)
            primitive = Primitive(
                stage,
                name,
                summary,
                target,
                _traits(provides, f"{what}: provides"),
                _traits(requires, f"{what}: requires"),
                self._origin,
            )
            self._add(stage, primitive)

        return register

    def _space(
        self, name: str, summary: str, source: str | PathLike[str] | Mapping[str, Any]
    ) -> None:
        what = f"space {name!r}"
        _check_name(name, what, _SUM_NAME)
        _check_summary(summary, what)
        if not isinstance(source, Mapping):
            try:
                source = Path(fspath(source))
            except TypeError as error:
                raise PluginError(
                    f"{what}: give the path of a YAML file or a mapping, not {source!r}"
                ) from error
            if not source.is_file():
                raise PluginError(f"{what}: there is no file {source}")
        self._add("space", SpaceEntry(name, summary, source, self._origin))

    def _objective(self, name: str, summary: str, *objectives: str) -> None:
        what = f"objective {name!r}"
        _check_name(name, what, _NAME)
        _check_summary(summary, what)
        for objective in objectives or ("",):
            parts = objective.split("/") if isinstance(objective, str) else []
            if len(parts) != 4 or not all(parts):
                raise PluginError(
                    f"{what}: {objective!r} is not an objective; write four names, such as "
                    "task/bert-op/bidirectional/denoise"
                )
        self._add("objective", ObjectiveEntry(name, summary, objectives, self._origin))

    def _recipe(
        self,
        name: str,
        summary: str,
        *,
        pretraining: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        what = f"recipe {name!r}"
        _check_name(name, what, _SUM_NAME)
        _check_summary(summary, what)
        if isinstance(pretraining, str) or not isinstance(pretraining, Iterable):
            raise PluginError(
                f"{what}: pretraining must be a tuple of strings, not {pretraining!r}; mind the "
                "comma"
            )
        stages = tuple(pretraining)
        for stage in stages:
            if not isinstance(stage, str) or not _NAME.fullmatch(stage):
                raise PluginError(f"{what}: pretraining holds {stage!r}; name objectives like tapt")
        options = {} if options is None else options
        if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
            raise PluginError(f"{what}: the options must be a mapping by name, not {options!r}")
        of_primitives = options.get("set", {})
        if not isinstance(of_primitives, Mapping) or not all(
            isinstance(value, Mapping) for value in of_primitives.values()
        ):
            raise PluginError(
                f"{what}: its option set must hold options by the name of a primitive or weighter, "
                f"such as {{'static': {{'n': 3}}}}, not {of_primitives!r}"
            )
        self._add("recipe", RecipeEntry(name, summary, stages, options, self._origin))

    def _command(self, name: str, summary: str, target: "str | click.Command") -> None:
        what = f"command {name!r}"
        _check_name(name, what, _NAME)
        _check_summary(summary, what)
        if isinstance(target, str):
            _check_target(target, what)
        else:
            import click

            if not isinstance(target, click.Command):
                raise PluginError(
                    f"{what}: {target!r} is not a click command; decorate it with @click.command"
                )
        self._add("command", CommandEntry(name, summary, target, self._origin))

    def _grid(self, name: str, summary: str, options: Mapping[str, Iterable[Any]]) -> None:
        what = f"grid {name!r}"
        _check_name(name, what, _NAME)
        _check_summary(summary, what)
        if not isinstance(options, Mapping) or not options:
            raise PluginError(f"{what}: give the values to try by option, not {options!r}")
        tried: dict[str, tuple[Any, ...]] = {}
        for option, values in options.items():
            # A string is iterable too: it yields its letters.
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise PluginError(f"{what}: {option}: give a list of values, not {values!r}")
            tried[option] = tuple(values)
            if not tried[option]:
                raise PluginError(f"{what}: {option} has no value to try")
        self._add("grid", GridEntry(name, summary, tried, self._origin))

    def _add(self, kind: str, entry: Entry) -> None:
        if self._closed:
            raise PluginError(
                f"{kind} {entry.name!r} was registered after the hook had returned; call register "
                "inside the hook"
            )
        if (kind, entry.name) in self._entries:
            raise PluginError(
                f"{kind} {entry.name!r} is registered twice; rename one of the two or remove it"
            )
        self._entries[kind, entry.name] = entry


def _check_name(name: object, what: str, form: re.Pattern[str]) -> None:
    if not isinstance(name, str) or not form.fullmatch(name):
        raise PluginError(f"{what}: the name must match {form.pattern}; rename it")


def _check_summary(summary: object, what: str) -> None:
    # Printed unchanged, so a line break or a control code would garble every listing.
    if not isinstance(summary, str) or not summary.strip() or not summary.isprintable():
        raise PluginError(f"{what}: the summary must be one line of text, not {summary!r}")


def _check_target(target: object, what: str) -> None:
    if isinstance(target, str):
        if not _TARGET.fullmatch(target):
            raise PluginError(f"{what}: the target must read 'module:object', not {target!r}")
    elif not callable(target):
        raise PluginError(
            f"{what}: the target must be callable or read 'module:object', not {target!r}"
        )


def _traits(traits: object, what: str) -> frozenset[str]:
    # A single string is an iterable of strings too: ("text") is a common mistake for ("text",).
    if isinstance(traits, str) or not isinstance(traits, Iterable):
        raise PluginError(f"{what} must be a tuple of strings, not {traits!r}; mind the comma")
    traits = list(traits)
    for trait in traits:
        if not isinstance(trait, str) or not _TRAIT.fullmatch(trait):
            raise PluginError(f"{what} holds {trait!r}; a trait reads like text or labels:end-task")
    return frozenset(traits)
