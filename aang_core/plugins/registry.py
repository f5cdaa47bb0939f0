"""Everything that plug-ins have registered, and how to look it up by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang_core.errors import AangError, PluginError
from aang_core.plugins.end_task_traits import ONE_CLASS, EndTaskTraits
from aang_core.plugins.faults import place_of, text_of
from aang_core.plugins.name_table import NamedT, NameTable
from aang_core.plugins.primitive import STAGES, Origin, Primitive, Stage, object_named
from aang_core.plugins.standard import (
    STANDARD,
    STANDARD_COMMANDS,
    STANDARD_GRIDS,
    STANDARD_HOOKS,
    STANDARD_OBJECTIVES,
    STANDARD_RECIPES,
    STANDARD_SPACES,
)

if TYPE_CHECKING:
    import click


@dataclass(frozen=True, slots=True)
class SpaceEntry:
    """A registered space; ``source`` is its YAML file or that file's content as a mapping."""

    name: str
    summary: str
    source: Path | Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True, slots=True)
class ObjectiveEntry:
    """A name for one or several objectives ``data/transform/representation/output``."""

    name: str
    summary: str
    objectives: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """A registered recipe, a complete way of training.

    Attributes:
        pretraining: named objectives that the encoder is trained on first, one after the other.
        options: the options of ``aang train`` that it sets; the user can override each.
    """

    name: str
    summary: str
    pretraining: tuple[str, ...]
    options: Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that a plug-in adds to ``aang``; it is imported when it runs.

    Attributes:
        target: a click command, or ``"module:object"`` that names one.
    """

    name: str
    summary: str
    target: "str | click.Command"
    origin: Origin

    def load(self) -> "click.Command":
        """Return the command, importing it if it was registered by name.

        Raises:
            PluginError: it cannot be imported, or is not a click command.
        """
        import click

        if isinstance(self.target, click.Command):
            return self.target
        whose = f"command {self.name} of {self.origin}"
        try:
            command = object_named(self.target)
        except (KeyboardInterrupt, AangError, MemoryError):
            raise
        # A plug-in's module may raise anything, including SystemExit.
        except BaseException as error:
            place = place_of(error)
            where = f" at {place}" if place else ""
            raise PluginError(
                f"{whose}: importing {self.target} raised {type(error).__name__}: "
                f"{text_of(error)}{where}"
            ) from error
        if not isinstance(command, click.Command):
            raise PluginError(f"{whose}: {self.target} is not a click command")
        return command


@dataclass(frozen=True, slots=True)
class GridEntry:
    """A registered grid of hyper-parameters.

    Attributes:
        options: for each option of ``aang train``, the values to try; ``NAME.OPTION`` for an option
            of a primitive or weighter.
    """

    name: str
    summary: str
    options: Mapping[str, tuple[Any, ...]]
    origin: Origin


@dataclass(frozen=True, slots=True)
class HookEntry:
    """A plug-in's implementation of a hook that is called after loading.

    Attributes:
        name: the name of the hook.
        call: takes the hook's arguments by name.
    """

    name: str
    call: Callable[..., Any]
    origin: Origin


Entry = Primitive | SpaceEntry | ObjectiveEntry | RecipeEntry | CommandEntry | GridEntry | HookEntry
"""Anything that a plug-in registers."""


class Registry:
    """Everything that the loaded plug-ins have registered.

    Args:
        entries: all registrations, in the order in which the plug-ins were loaded.
        unavailable: for each distribution with a plug-in that is not loaded, a phrase that says
            why.
        author: the distribution whose words are looked up; None for a user's. See
            :meth:`as_meant_by`.
        end_task: the traits that objectives have from the kind of end task.

    Attributes:
        spaces: the registered spaces; iterate over it, or look one up with ``find``.
        objectives: the named objectives.
        recipes: the recipes.
        commands: the commands.
        grids: the grids of hyper-parameters.
        hooks: implementations of the hooks that are called after loading.

    Examples:
        >>> from aang_core import load_plugins
        >>> registry = load_plugins().registry
        >>> registry.primitive("transform", "mask").name
        'mask'
        >>> registry.spaces.find("td").summary
        "objectives over the end task's own text"
        >>> registry.objectives.find("tapt").objectives
        ('task/bert-op/bidirectional/denoise',)
    """

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        unavailable: Mapping[str, str] | None = None,
        author: str | None = None,
        end_task: EndTaskTraits = ONE_CLASS,
    ) -> None:
        entries = list(entries)
        self.end_task = end_task
        self._entries = entries
        self._unavailable = unavailable
        self._author = author
        primitives = [entry for entry in entries if isinstance(entry, Primitive)]
        self._stages = {
            stage: NameTable(
                "data primitive" if stage == "data" else stage,
                [primitive for primitive in primitives if primitive.stage == stage],
                STANDARD.get(stage),
                unavailable,
                author,
            )
            for stage in (*STAGES, "weighter")
        }

        def table(
            kind: str, type_: type[NamedT], standard: Mapping[str, str] | None = None
        ) -> NameTable[NamedT]:
            found = [entry for entry in entries if isinstance(entry, type_)]
            return NameTable(kind, found, standard, unavailable, author)

        self.spaces = table("space", SpaceEntry, STANDARD_SPACES)
        self.objectives = table("objective", ObjectiveEntry, STANDARD_OBJECTIVES)
        self.recipes = table("recipe", RecipeEntry, STANDARD_RECIPES)
        self.commands = table("command", CommandEntry, STANDARD_COMMANDS)
        self.grids = table("grid", GridEntry, STANDARD_GRIDS)
        self.hooks = table("implementation of the hook", HookEntry, STANDARD_HOOKS)

    def with_primitives(self, primitives: Iterable[Primitive]) -> "Registry":
        """Return a registry that also has these primitives."""
        entries = [*self._entries, *primitives]
        return Registry(entries, self._unavailable, self._author, self.end_task)

    def for_end_task(self, end_task: EndTaskTraits) -> "Registry":
        """Return the same registry, whose objectives serve an end task of another kind."""
        return Registry(self._entries, self._unavailable, self._author, end_task)

    def as_meant_by(self, distribution: str) -> "Registry":
        """Return the same registry, in which short names mean what they mean to a distribution.

        Use it for names that a plug-in or the core has written: in its spaces, named objectives,
        recipes and defaults. A short name there is the distribution's own, or else that of the
        standard plug-in which supplies it. It stays the same when somebody else's plug-in registers
        the name too, while a user who writes that name is asked which one is meant.

        Args:
            distribution: the name of the distribution.

        Examples:
            >>> from aang_core import load_plugins
            >>> registry = load_plugins().registry.as_meant_by("aang-core")
            >>> registry.primitive("transform", "mask").origin.distribution
            'aang-plugin-bert'
        """
        return Registry(self._entries, self._unavailable, distribution, self.end_task)

    def primitives(self, stage: Stage | None = None) -> tuple[Primitive, ...]:
        """The primitives of one stage, or of all stages and then the weighters."""
        tables = self._stages.values() if stage is None else [self._stages[stage]]
        return tuple(primitive for table in tables for primitive in table)

    def primitive(self, stage: Stage, name: str) -> Primitive:
        """Look up a primitive.

        Args:
            stage: its stage, or ``"weighter"``.
            name: its name, or ``distribution:name``.

        Raises:
            UnknownNameError: nobody registered it; the message says which plug-in supplies it, or
                offers similar names.
            AmbiguousNameError: several plug-ins own the short name.
        """
        found = self._stages[stage].find(name)
        return replace(found, qualified=True) if ":" in name else found

    def stage_of(self, name: str) -> Stage | None:
        """The first stage with a primitive of that name; None if none has one."""
        return next((stage for stage in STAGES if name in self._stages[stage]), None)

    def in_full(self, stage: Stage, name: str) -> str:
        """The shortest name by which a user finds the primitive that the author means."""
        return self._stages[stage].in_full(name)

    def weighter(self, name: str) -> Primitive:
        """Look up a weighter; raises like :meth:`primitive`."""
        return self.primitive("weighter", name)
