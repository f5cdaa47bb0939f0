"""What all plug-ins together have registered, and how to look it up by name."""

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
    """A name for a whole way of training.

    pretraining: named objectives that the encoder is trained on first, each alone and in turn.
    options: what the recipe sets of the options of a training; the user can override each.
    """

    name: str
    summary: str
    pretraining: tuple[str, ...]
    options: Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that a plug-in adds to ``aang``; it is imported when it is run.

    Attributes:
        target: A click command, or ``"module:object"`` that names one.
    """

    name: str
    summary: str
    target: "str | click.Command"
    origin: Origin

    def load(self) -> "click.Command":
        """The command, imported now if it was given by name.

        Raises:
            PluginError: It cannot be imported, or is not a click command.
        """
        import click

        if isinstance(self.target, click.Command):
            return self.target
        whose = f"command {self.name} of {self.origin}"
        try:
            command = object_named(self.target)
        except (KeyboardInterrupt, AangError, MemoryError):
            raise
        # Somebody else's module may raise anything, sys.exit included.
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
        options: For each option of ``aang train``, the values to try; ``NAME.OPTION`` for one of a
            primitive or weighter.
    """

    name: str
    summary: str
    options: Mapping[str, tuple[Any, ...]]
    origin: Origin


@dataclass(frozen=True, slots=True)
class HookEntry:
    """A plug-in's implementation of a hook that is called later than at loading.

    name: of the hook. call: takes the hook's arguments by name.
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
    """Things of one kind by name, several plug-ins being free to use the same name.

    kind: what the things are called in messages.
    standard: the distribution that supplies a name which is not here.
    unavailable: why the plug-ins of a distribution are not loaded.
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
    """Everything that is registered, from all plug-ins that loaded.

    entries: in the order in which the plug-ins were loaded.
    unavailable: for each distribution with a plug-in that is not loaded, a phrase that says why.
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
        self.spaces = NameTable(
            "space",
            [entry for entry in entries if isinstance(entry, SpaceEntry)],
            unavailable=unavailable,
        )
        self.objectives = NameTable(
            "objective",
            [entry for entry in entries if isinstance(entry, ObjectiveEntry)],
            unavailable=unavailable,
        )
        self.recipes = NameTable(
            "recipe",
            [entry for entry in entries if isinstance(entry, RecipeEntry)],
            STANDARD_RECIPES,
            unavailable,
        )
        self.commands = NameTable(
            "command",
            [entry for entry in entries if isinstance(entry, CommandEntry)],
            STANDARD_COMMANDS,
            unavailable,
        )
        self.grids = NameTable(
            "grid",
            [entry for entry in entries if isinstance(entry, GridEntry)],
            STANDARD_GRIDS,
            unavailable,
        )

        self.hooks = NameTable(
            "implementation of the hook",
            [entry for entry in entries if isinstance(entry, HookEntry)],
            STANDARD_HOOKS,
            unavailable,
        )

    def with_primitives(self, primitives: Iterable[Primitive]) -> "Registry":
        """A registry that has these primitives too."""
        return Registry([*self._entries, *primitives], self._unavailable)

    def primitives(self, stage: Stage | None = None) -> tuple[Primitive, ...]:
        """The primitives of one stage, or of all stages and then the weighters."""
        tables = self._stages.values() if stage is None else [self._stages[stage]]
        return tuple(primitive for table in tables for primitive in table)

    def primitive(self, stage: Stage, name: str) -> Primitive:
        """The primitive of that stage called ``name``, or ``distribution:name``.

        Raises:
            UnknownNameError: nobody registered it; the message says which plug-in supplies it, or
                offers near names.
            AmbiguousNameError: several plug-ins own the short name.
        """
        found = self._stages[stage].find(name)
        return replace(found, qualified=True) if ":" in name else found

    def weighter(self, name: str) -> Primitive:
        """The weighter called ``name``; raises as :meth:`primitive` does."""
        return self.primitive("weighter", name)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A clause that offers the names near to ``name``, or else lists all that there are."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{otherwise}: {', '.join(known)}" if known else "nothing of the kind is installed"
