"""Everything that plug-ins have registered, and what a name means to a user or a plug-in."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from typing import Generic, TypeVar, get_args

from aang_core.errors import AmbiguousNameError, UnknownNameError
from aang_core.plugins.primitive import (
    CORE,
    STAGES,
    CandidateEntry,
    Entry,
    GridEntry,
    HookEntry,
    ObjectiveEntry,
    OptionEntry,
    Primitive,
    RecipeEntry,
    SpaceEntry,
    Stage,
    TargetEntry,
    normalised,
)

DEFAULT_WEIGHTER = "factored"
"""The weighter of a training that names none, whatever else is installed."""

APPLICATION = "aang"
"""The distribution that requires the standard plug-ins."""

_DISTRIBUTIONS = "aang-plugin-"
_NEAR = 0.6
_MOST_LISTED = 25
"""A longer list of names is no help in a message."""

EntryT = TypeVar("EntryT", bound=Entry)

PREFIX = "end-task:"

READS_END_TASK_HEAD = "end-task-head"
"""The trait of outputs whose head has the end task's shape and reads what its head reads."""

_OF_AUXILIARY_TASKS = frozenset({"text", "labels:own"})
"""What the files of ``--aux-task`` provide, which no plug-in registers."""


@dataclass(frozen=True, slots=True)
class EndTaskTraits:
    """Traits that every objective of a run has from its end task.

    Attributes:
        task_type: the kind of end task, such as ``single-label``.
        waived: traits that outputs with the trait ``end-task-head`` may do without, because this
            kind's head does not read what they are about.

    Examples:
        >>> from aang_core.plugins.registry import EndTaskTraits
        >>> EndTaskTraits("multi-label").provides
        frozenset({'end-task:multi-label'})
    """

    task_type: str
    waived: frozenset[str] = frozenset()

    @property
    def provides(self) -> frozenset[str]:
        """``end-task:`` and the kind."""
        return frozenset({PREFIX + self.task_type})


ONE_CLASS = EndTaskTraits("single-label")
"""The traits of an end task with one class a text, used while the end task is unknown."""


def required_by(distribution: str) -> frozenset[str]:
    """The distributions that an installed one requires, for its extras too; empty if unknown."""
    try:
        required = requires(distribution) or []
    except (PackageNotFoundError, ValueError):  # a file, or not a name at all
        return frozenset()
    return frozenset(normalised(re.split(r"[^\w.-]", line)[0]) for line in required)


@cache
def standard_plugins() -> frozenset[str]:
    """The application, and the plug-ins that it brings, as listed by its metadata."""
    required = required_by(APPLICATION)
    return frozenset({APPLICATION, *(n for n in required if n.startswith(_DISTRIBUTIONS))})


class NameTable(Generic[EntryT]):
    """Things of one kind by name. Several plug-ins may use the same name.

    Args:
        kind: what messages call the things.
        entries: the things.
        registry: says who means the names, and which plug-ins are missing.
    """

    def __init__(self, kind: str, entries: Iterable[EntryT], registry: "Registry") -> None:
        self._kind = kind
        self._registry = registry
        self._owners: dict[str, list[EntryT]] = {}
        for entry in entries:
            self._owners.setdefault(entry.name, []).append(entry)

    def __iter__(self) -> Iterator[EntryT]:
        """All entries, in the order in which they were registered."""
        return (entry for owners in self._owners.values() for entry in owners)

    def __contains__(self, name: str) -> bool:
        """Whether somebody registered ``name``, or ``distribution:name``."""
        distribution, _, short = name.rpartition(":")
        return any(distribution in ("", owner) for owner in self._owners_of(short))

    def find(self, name: str, also: Iterable[str] = ()) -> EntryT:
        """The entry called ``name``, or ``distribution:name``.

        Args:
            name: the name.
            also: names of this kind that the table does not hold, to offer in its message.

        Raises:
            UnknownNameError: no plug-in, or none that the author can mean, registered that name;
                the message offers similar ones.
            AmbiguousNameError: several plug-ins own the short name; the message names them.
        """
        distribution, _, short = name.rpartition(":")
        meant = {distribution} if distribution else self._meant(short)
        found = [e for e in self._owners.get(short, []) if e.origin.distribution in meant]
        if len(found) > 1:
            raise AmbiguousNameError(
                f"the {self._kind} {name} is registered by more than one plug-in: "
                f"{', '.join(entry.qualified_name for entry in found)}; use one of these names to "
                "pick, or disable a plug-in"
            )
        if not found:
            raise UnknownNameError(self._unknown(name, also))
        return found[0]

    def in_full(self, name: str) -> str:
        """The shortest name by which a user finds what this table's author means by ``name``.

        It is the short name, unless a plug-in that the author does not mean has it too.
        """
        distribution, _, short = name.rpartition(":")
        owners = self._owners_of(short)
        if distribution and distribution not in owners:
            return name
        meant = {distribution} if distribution else self._meant(short)
        if owners <= meant:
            return short
        # If the plug-in that the author means is missing, another's must not be found instead.
        return f"{min(meant, default=self._registry.author)}:{short}"

    def _owners_of(self, short: str) -> set[str]:
        return {entry.origin.distribution for entry in self._owners.get(short, [])}

    def _meant(self, short: str) -> set[str]:
        """The owners of a short name that the author can mean; a user means any.

        An author means their own, or else that of the core or of a standard plug-in, or else that
        of a distribution that their own requires. Other installed plug-ins change nothing.
        """
        owners, author = self._owners_of(short), self._registry.author
        if author is None:
            return owners
        standard = standard_plugins() | {CORE}
        return (
            owners & {author}
            or {owner for owner in owners if normalised(owner) in standard}
            or {owner for owner in owners if normalised(owner) in required_by(author)}
        )

    def _unknown(self, name: str, also: Iterable[str]) -> str:
        distribution, _, short = name.rpartition(":")
        message = f"there is no {self._kind} {name}"
        absent = self._registry.absent()
        # A plug-in is often named after what it brings.
        supplier = distribution or f"{_DISTRIBUTIONS}{short.replace('_', '-')}"
        if supplier in absent:
            return f"{message}: {supplier} is {absent[supplier]}"
        why = f" ({'; '.join(_grouped(absent))})" if absent else ""
        others = sorted(self._owners_of(short))
        if others and not distribution:
            return (
                f"{message} of {self._registry.author} or of a plug-in that it requires, and it "
                f"cannot mean that of {' or '.join(others)}{why}"
            )
        known = [e.qualified_name for e in self] if distribution else [*self._owners, *also]
        hint = did_you_mean(name, known, "it is one of")
        if _similar(name, known):
            return f"{message}; {hint}{why}"
        # If a plug-in is missing, the name is probably its own, and no long list would have it.
        return (
            f"{message}{why}" if absent and len(known) > _MOST_LISTED else f"{message}{why}; {hint}"
        )


def _grouped(absent: Mapping[str, str]) -> list[str]:
    """Each reason with the plug-ins that it applies to."""
    names: dict[str, list[str]] = {}
    for name, reason in absent.items():
        names.setdefault(reason, []).append(name)
    return [
        f"{', '.join(sorted(group))} {'are' if group[1:] else 'is'} {reason}"
        for reason, group in names.items()
    ]


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
    if near := _similar(name, known):
        return f"did you mean {' or '.join(near)}?"
    return f"{otherwise}: {', '.join(known)}" if known else "nothing of the kind is installed"


def _similar(name: str, known: Iterable[str]) -> list[str]:
    """At most three names, those most like ``name``."""
    # All distributions begin alike, so names that share nothing else would look similar.
    wanted = name.removeprefix(_DISTRIBUTIONS)
    return [
        one
        for one in difflib.get_close_matches(name, known, n=_MOST_LISTED, cutoff=_NEAR)
        if difflib.SequenceMatcher(None, one.removeprefix(_DISTRIBUTIONS), wanted).ratio() >= _NEAR
    ][:3]


@dataclass(eq=False)
class Registry:
    """Everything that the loaded plug-ins have registered.

    Args:
        entries: all registrations, in the order in which the plug-ins were loaded.
        unavailable: for each distribution with a plug-in that is not loaded, the reason.
        author: the distribution that wrote the names to look up; None for a user. See
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
        candidates: the ways to a classifier that ``aang best`` tries.
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

    entries: Sequence[Entry] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    author: str | None = None
    end_task: EndTaskTraits = ONE_CLASS

    def __post_init__(self) -> None:
        def table(kind: str, type_: type[EntryT]) -> NameTable[EntryT]:
            return NameTable(kind, (e for e in self.entries if isinstance(e, type_)), self)

        def targets(kind: str) -> NameTable[TargetEntry]:
            every = (e for e in self.entries if isinstance(e, TargetEntry))
            return NameTable(kind, (e for e in every if e.kind == kind), self)

        primitives = [e for e in self.entries if isinstance(e, Primitive)]
        self._stages = {
            stage: NameTable(
                "data primitive" if stage == "data" else stage,
                (p for p in primitives if p.stage == stage),
                self,
            )
            for stage in get_args(Stage)
        }
        self.spaces = table("space", SpaceEntry)
        self.objectives = table("objective", ObjectiveEntry)
        self.recipes = table("recipe", RecipeEntry)
        self.grids = table("grid", GridEntry)
        self.candidates = table("candidate", CandidateEntry)
        self.options = table("option", OptionEntry)
        self.hooks = table("implementation of the hook", HookEntry)
        self.commands = targets("command")
        self.engines = targets("gradient engine")
        self.dev_heads = targets("dev head")
        self.task_types = targets("kind of end task")
        self.tasks = targets("end task")

    def absent(self) -> dict[str, str]:
        """For each plug-in that is not loaded, and each standard one not installed, the reason."""
        present = {*self.unavailable, *(e.origin.distribution for e in self.entries)}
        missing = standard_plugins() - set(map(normalised, present))
        reason = f"not installed: pip install {APPLICATION}"
        return {**self.unavailable, **dict.fromkeys(sorted(missing), reason)}

    def with_primitives(self, primitives: Iterable[Primitive]) -> "Registry":
        """Return a registry that also has these primitives."""
        return replace(self, entries=[*self.entries, *primitives])

    def for_end_task(self, end_task: EndTaskTraits) -> "Registry":
        """Return the same registry, whose objectives serve an end task of another kind."""
        return replace(self, end_task=end_task)

    def as_meant_by(self, distribution: str) -> "Registry":
        """Return the same registry, with short names resolved as a distribution means them.

        Use it for names that a plug-in or the core has written: in its spaces, named objectives,
        recipes and defaults. A short name there is the distribution's own, or else that of the core
        or a standard plug-in, or else that of a plug-in that the distribution requires. This does
        not change when another plug-in registers the name too, while a user who writes that name is
        asked which one is meant.

        Args:
            distribution: the name of the distribution.

        Examples:
            >>> from aang_core import load_plugins
            >>> registry = load_plugins().registry.as_meant_by("aang-core")
            >>> registry.primitive("transform", "mask").origin.distribution
            'aang-plugin-bert'
        """
        return replace(self, author=distribution)

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
            UnknownNameError: it is not registered; the message offers similar names, and names the
                plug-ins that are missing.
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

    def unprovided_traits(self, primitives: Iterable[Primitive]) -> list[str]:
        """A sentence for each trait that one of ``primitives`` requires and nothing provides.

        Traits of end tasks are left out: each objective reports whether its end task has them.
        """
        registered = self.primitives()
        provided = _OF_AUXILIARY_TASKS.union(*(primitive.provides for primitive in registered))
        return [
            f"the {primitive.stage} {primitive.key} requires {trait}, which nobody provides; "
            f"{_trait_hint(trait, provided)}"
            for primitive in primitives
            for trait in sorted(primitive.requires - provided)
            if not trait.startswith(PREFIX)
        ]


def _trait_hint(trait: str, provided: Iterable[str]) -> str:
    # All labels:… look alike, so one trait is offered, not three.
    near = difflib.get_close_matches(trait, sorted(provided), n=1)
    return did_you_mean(trait, near or provided, "the traits that somebody provides are")
