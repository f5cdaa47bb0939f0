"""Everything that plug-ins have registered, and how to look it up by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from aang_core.errors import AangError, PluginError
from aang_core.plugins.faults import raised
from aang_core.plugins.name_table import (
    APPLICATION,
    NamedT,
    NameTable,
    normalised,
    standard_plugins,
)
from aang_core.plugins.primitive import STAGES, Origin, Primitive, Stage, object_named
from aang_core.plugins.traits import ONE_CLASS, EndTaskTraits


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a plug-in registered, besides primitives."""

    name: str
    summary: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class SpaceEntry(Entry):
    """A registered space; ``source`` is its YAML file or that file's content as a mapping."""

    source: Path | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectiveEntry(Entry):
    """A name for one or several objectives ``data/transform/representation/output``."""

    objectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecipeEntry(Entry):
    """A registered recipe, a complete way of training.

    Attributes:
        pretraining: named objectives that the encoder is trained on first, one after the other.
        options: the options of ``aang train`` that it sets; the user can override each.
    """

    pretraining: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GridEntry(Entry):
    """A registered grid of hyper-parameters.

    Attributes:
        options: for each option of ``aang train``, the values to try; ``NAME.OPTION`` for an option
            of a primitive or weighter.
    """

    options: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class HookEntry(Entry):
    """A plug-in's implementation of a hook that is called after loading.

    Attributes:
        call: takes the hook's arguments by name.
    """

    call: Callable[..., Any]


TargetKind = Literal["gradient engine", "dev head", "kind of end task", "end task", "command"]
"""What a :class:`TargetEntry` registers, in the words of messages."""


@dataclass(frozen=True, slots=True)
class TargetEntry(Entry):
    """Something that is imported when it is first used.

    Attributes:
        target: a callable, or ``"module:object"`` that names one.
    """

    kind: TargetKind
    target: str | Callable[..., Any]

    def load(self) -> Any:
        """Return the target, importing it if it was registered by name.

        Raises:
            PluginError: it cannot be imported, or is not callable.
        """
        whose = f"{self.kind} {self.name} of {self.origin}"
        target = _imported(self.target, whose) if isinstance(self.target, str) else self.target
        if not callable(target):
            raise PluginError(f"{whose}: {self.target} is not callable")
        return target


@dataclass(frozen=True, slots=True, eq=False)
class OptionEntry(Entry):
    """An option that a plug-in adds to ``aang train``.

    Attributes:
        type: the type of its value, or ``"module:object"`` that names one.
        default: its value if nobody gives it.
        goes_with: the option without which it means nothing; None if it stands alone.
        reporting: whether the numbers of a training do not depend on it.
    """

    type: Any
    default: Any
    goes_with: str | None
    reporting: bool

    def load_type(self) -> Any:
        """Return the type, importing it if it was registered by name.

        Raises:
            PluginError: it cannot be imported.
        """
        if not isinstance(self.type, str):
            return self.type
        return _imported(self.type, f"option {self.name} of {self.origin}")


def _imported(target: str, whose: str) -> Any:
    """What ``"module:object"`` names; an error says whose it is."""
    try:
        return object_named(target)
    except (AangError, MemoryError):
        raise
    # A plug-in's module may raise anything.
    except (Exception, SystemExit) as error:
        raise PluginError(f"{whose}: importing {target} {raised(error)}") from error


class Registry:
    """Everything that the loaded plug-ins have registered.

    Args:
        entries: all registrations, in the order in which the plug-ins were loaded.
        unavailable: for each distribution with a plug-in that is not loaded, the reason.
        author: the distribution whose words are looked up; None for a user's. See
            :meth:`as_meant_by`.
        end_task: the traits that objectives have from the kind of end task.

    Attributes:
        spaces: the registered spaces; iterate over it, or look one up with ``find``.
        objectives: the named objectives.
        recipes: the recipes.
        commands: the commands.
        grids: the grids of hyper-parameters.
        engines: the gradient engines.
        dev_heads: the dev heads.
        task_types: the kinds of end task.
        tasks: the end tasks that plug-ins bring.
        options: the options that plug-ins add to ``aang train``.
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
        entries: Iterable[Primitive | Entry] = (),
        unavailable: Mapping[str, str] | None = None,
        author: str | None = None,
        end_task: EndTaskTraits = ONE_CLASS,
    ) -> None:
        self.end_task = end_task
        self._entries = list(entries)
        self._unavailable = unavailable or {}
        self._author = author

        def table(
            kind: str, type_: type[NamedT], of_kind: Callable[[NamedT], bool] = lambda entry: True
        ) -> NameTable[NamedT]:
            found = (entry for entry in self._entries if isinstance(entry, type_))
            return NameTable(kind, filter(of_kind, found), self.absent, author)

        def of_stage(stage: Stage) -> NameTable[Primitive]:
            kind = "data primitive" if stage == "data" else stage
            return table(kind, Primitive, lambda primitive: primitive.stage == stage)

        def targets(kind: TargetKind) -> NameTable[TargetEntry]:
            return table(kind, TargetEntry, lambda entry: entry.kind == kind)

        stages: tuple[Stage, ...] = (*STAGES, "weighter")
        self._stages = {stage: of_stage(stage) for stage in stages}
        self.spaces = table("space", SpaceEntry)
        self.objectives = table("objective", ObjectiveEntry)
        self.recipes = table("recipe", RecipeEntry)
        self.grids = table("grid", GridEntry)
        self.commands = targets("command")
        self.engines = targets("gradient engine")
        self.dev_heads = targets("dev head")
        self.task_types = targets("kind of end task")
        self.tasks = targets("end task")
        self.options = table("option", OptionEntry)
        self.hooks = table("implementation of the hook", HookEntry)

    def absent(self) -> dict[str, str]:
        """For each plug-in that is not loaded, and each standard one not installed, the reason."""
        present = {*self._unavailable, *(e.origin.distribution for e in self._entries)}
        missing = standard_plugins() - set(map(normalised, present))
        reason = f"not installed: pip install {APPLICATION}"
        return {**self._unavailable, **dict.fromkeys(sorted(missing), reason)}

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
        recipes and defaults. A short name there is the distribution's own, or else that of the core
        or a standard plug-in, or else that of a plug-in that the distribution requires. It stays so
        when somebody else's plug-in registers the name too, while a user who writes that name is
        asked which one is meant.

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
            UnknownNameError: nobody registered it; the message offers similar names, and names the
                plug-ins that are not there.
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
