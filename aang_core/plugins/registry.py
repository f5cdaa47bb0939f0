"""Everything that plug-ins have registered, and how to look it up by name."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from aang_core.errors import AangError, AmbiguousNameError, PluginError, UnknownNameError
from aang_core.plugins.faults import place_of, text_of
from aang_core.plugins.primitive import STAGES, Origin, Primitive, Stage, object_named
from aang_core.plugins.standard import (
    STANDARD,
    STANDARD_COMMANDS,
    STANDARD_GRIDS,
    STANDARD_HOOKS,
    STANDARD_RECIPES,
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


class Named(Protocol):
    """What a :class:`NameTable` holds."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> Origin: ...


NamedT = TypeVar("NamedT", bound=Named)


class NameTable(Generic[NamedT]):
    """Things of one kind by name. Several plug-ins may use the same name.

    Args:
        kind: what messages call the things.
        entries: the things.
        standard: for a name that may be missing, the distribution that supplies it.
        unavailable: for each distribution with a plug-in that is not loaded, the reason.
    """

    def __init__(
        self,
        kind: str,
        entries: Iterable[NamedT],
        standard: Mapping[str, str] | None = None,
        unavailable: Mapping[str, str] | None = None,
    ) -> None:
        self._kind = kind
        self._standard = standard or {}
        self._unavailable = unavailable or {}
        self._owners: dict[str, list[NamedT]] = {}
        for entry in entries:
            self._owners.setdefault(entry.name, []).append(entry)

    def __iter__(self) -> Iterator[NamedT]:
        """All entries, in the order in which they were registered."""
        return (entry for owners in self._owners.values() for entry in owners)

    def __contains__(self, name: str) -> bool:
        """Whether :meth:`find` would find something, or several things, under ``name``."""
        distribution, _, short = name.rpartition(":")
        owners = self._owners.get(short, [])
        return any(distribution in ("", entry.origin.distribution) for entry in owners)

    def find(self, name: str) -> NamedT:
        """The entry called ``name``, or ``distribution:name``.

        Raises:
            UnknownNameError: nobody registered that name; the message offers near ones.
            AmbiguousNameError: several plug-ins own the short name; the message names them.
        """
        distribution, _, short = name.rpartition(":")
        owners = self._owners.get(short, [])
        if distribution:
            owners = [entry for entry in owners if entry.origin.distribution == distribution]
        if len(owners) > 1:
            choices = [f"{entry.origin.distribution}:{entry.name}" for entry in owners]
            raise AmbiguousNameError(
                f"the {self._kind} {name} is registered by more than one plug-in: "
                f"{', '.join(choices)}; use one of these names to pick, or disable a plug-in"
            )
        if not owners:
            raise UnknownNameError(self._unknown(name, distribution, short))
        return owners[0]

    def _unknown(self, name: str, distribution: str, short: str) -> str:
        message = f"there is no {self._kind} {name}"
        supplier = distribution or self._standard.get(short, "")
        if supplier in self._unavailable:
            return f"{message}: {supplier} {self._unavailable[supplier]}"
        if not distribution and supplier:
            return f"{message}: it comes with {supplier}, which pip install {supplier} installs"
        qualified = [f"{entry.origin.distribution}:{entry.name}" for entry in self]
        known = qualified if distribution else list(self._owners)
        message += f"; {did_you_mean(name, [*known, *self._standard], 'it is one of')}"
        if self._unavailable and not distribution:
            absent = ", ".join(self._unavailable)
            message += f" (plug-ins that are not loaded: {absent}; see aang plugins)"
        return message


class Registry:
    """Everything that the loaded plug-ins have registered.

    Args:
        entries: all registrations, in the order in which the plug-ins were loaded.
        unavailable: for each distribution with a plug-in that is not loaded, a phrase that says
            why.

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
        self, entries: Iterable[Entry] = (), unavailable: Mapping[str, str] | None = None
    ) -> None:
        entries = list(entries)
        self._entries = entries
        self._unavailable = unavailable
        primitives = [entry for entry in entries if isinstance(entry, Primitive)]
        self._stages = {
            stage: NameTable(
                "data primitive" if stage == "data" else stage,
                [primitive for primitive in primitives if primitive.stage == stage],
                STANDARD.get(stage),
                unavailable,
            )
            for stage in (*STAGES, "weighter")
        }

        def table(
            kind: str, type_: type[NamedT], standard: Mapping[str, str] | None = None
        ) -> NameTable[NamedT]:
            found = [entry for entry in entries if isinstance(entry, type_)]
            return NameTable(kind, found, standard, unavailable)

        self.spaces = table("space", SpaceEntry)
        self.objectives = table("objective", ObjectiveEntry)
        self.recipes = table("recipe", RecipeEntry, STANDARD_RECIPES)
        self.commands = table("command", CommandEntry, STANDARD_COMMANDS)
        self.grids = table("grid", GridEntry, STANDARD_GRIDS)
        self.hooks = table("implementation of the hook", HookEntry, STANDARD_HOOKS)

    def with_primitives(self, primitives: Iterable[Primitive]) -> "Registry":
        """Return a registry that also has these primitives."""
        return Registry([*self._entries, *primitives], self._unavailable)

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

    def weighter(self, name: str) -> Primitive:
        """Look up a weighter; raises like :meth:`primitive`."""
        return self.primitive("weighter", name)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Word a hint for an unknown name.

    Args:
        name: what the user wrote.
        known: the names that exist.
        otherwise: the words before the list of all names, if none is similar.

    Returns:
        A clause that offers similar names, or else lists all of them.

    Examples:
        >>> from aang_core import did_you_mean
        >>> did_you_mean("denose", ["denoise", "end-task"], "the outputs are")
        'did you mean denoise?'
        >>> did_you_mean("x", ["denoise", "end-task"], "the outputs are")
        'the outputs are: denoise, end-task'
    """
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{otherwise}: {', '.join(known)}" if known else "nothing of the kind is installed"
