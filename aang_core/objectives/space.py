"""Spaces: named lists of primitives per stage, whose legal combinations are the objectives."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aang_core.errors import AmbiguousNameError, ConfigError, UnknownNameError
from aang_core.objectives.objective import Objective
from aang_core.objectives.space_file import SpaceFile, read_space_file, validate_space
from aang_core.plugins.primitive import STAGES, Primitive, SpaceEntry, Stage
from aang_core.plugins.registry import ONE_CLASS, EndTaskTraits, did_you_mean
from aang_core.storage.yaml_source import Source

if TYPE_CHECKING:
    from aang_core.plugins.registry import Registry


class Dropped(NamedTuple):
    """A combination that is not one of the space's objectives, and why."""

    objective: str
    reason: str


@dataclass(frozen=True)
class Space:
    """A named list of primitives per stage.

    Its objectives follow from the lists alone; primitives that are installed but not listed are not
    used.

    Attributes:
        name: its name.
        summary: one line that describes it to people.
        stages: the primitives of each stage.
        excluded: names of combinations that are not trained although they are legal.
        notes: what is odd about it, such as a primitive that requires a trait which nobody
            provides; a sentence each.
        end_task: the traits that its objectives have from the kind of end task.

    Examples:
        >>> from aang_core import load_plugins, load_space
        >>> space = load_space("td", load_plugins().registry)
        >>> len(space.combinations), len(space.objectives)
        (32, 24)
        >>> print(space.dropped[0].objective)
        task/bert-op/left-to-right/end-task
    """

    name: str
    summary: str
    stages: Mapping[Stage, tuple[Primitive, ...]]
    excluded: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    end_task: EndTaskTraits = ONE_CLASS

    @cached_property
    def combinations(self) -> tuple[Objective, ...]:
        """Every combination; the last stage varies fastest."""
        return tuple(
            Objective(data, transform, representation, output, end_task=self.end_task)
            for data, transform, representation, output in itertools.product(
                *(self.stages[stage] for stage in STAGES)
            )
        )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The legal combinations that are not excluded, in the order of :attr:`combinations`."""
        return tuple(o for o in self.combinations if o.legal and o.name not in self.excluded)

    @cached_property
    def shared_passes(self) -> Mapping[str, tuple[Objective, ...]]:
        """Objectives that share a pass through the encoder when a step trains several of them.

        The key is what they share: ``end-task`` for the end task's own pass, otherwise data,
        transform and representation. Objectives whose output declares ``several-views`` share no
        pass.
        """
        groups: dict[str, list[Objective]] = {}
        for objective in self.objectives:
            if "several-views" in objective.output.provides:
                continue
            of_step = "rows-of-the-step" in objective.data.provides
            parts = [p.key for p in objective.primitives if p.stage != "output"]
            groups.setdefault("end-task" if of_step else "/".join(parts), []).append(objective)
        return {
            name: tuple(group)
            for name, group in groups.items()
            if len(group) > 1 or name == "end-task"
        }

    @cached_property
    def dropped(self) -> tuple[Dropped, ...]:
        """All other combinations, each with its reason."""
        kept = set(self.objectives)
        return tuple(
            Dropped(o.name, o.illegal_because or f"the space {self.name} excludes it")
            for o in self.combinations
            if o not in kept
        )


def load_space(source: str | Path, registry: "Registry") -> Space:
    """Look up a space, or read it from a file.

    Args:
        source: the name of a registered space, or a file ``FILE.yaml``. A named objective such as
            ``tapt``, a name of several objectives such as ``elmo``, and one objective written as
            ``data/transform/representation/output`` each give a space of exactly these objectives.
        registry: where the names are looked up.

    Raises:
        ConfigError: the file cannot be read or does not hold a space; the message names file and
            line.
        UnknownNameError: there is no such space or objective, or the space lists a primitive that
            nobody registered.
        AmbiguousNameError: the space lists a primitive by a short name that two plug-ins own.

    Examples:
        >>> from aang_core import load_plugins, load_space
        >>> [str(objective) for objective in load_space("tapt", load_plugins().registry).objectives]
        ['task/bert-op/bidirectional/denoise']
    """
    if isinstance(source, Path) or source.endswith((".yaml", ".yml")):
        return _resolve(*read_space_file(Path(source)), registry)
    if "/" in source:
        return _of_objectives(source, "", [Objective.parse(source, registry)], registry)
    if source in registry.objectives and source not in registry.spaces:
        named = registry.objectives.find(source)
        theirs = registry.as_meant_by(named.origin.distribution)
        parsed = [Objective.parse(objective, theirs) for objective in named.objectives]
        return _of_objectives(source, named.summary, parsed, registry)
    return _registered(registry.spaces.find(source), registry)


def name_in_full(name: str, registry: "Registry") -> str:
    """The shortest name by which a user loads the space that the registry's author means.

    Args:
        name: as :func:`load_space` takes it; files and objectives of four names are left as they
            are.
        registry: see :meth:`~aang_core.plugins.registry.Registry.as_meant_by`.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return name
    in_full = registry.spaces.in_full(name)
    return in_full if name in registry.spaces else registry.objectives.in_full(name)


def _of_objectives(
    name: str, summary: str, objectives: Sequence[Objective], registry: "Registry"
) -> Space:
    """Make the space of exactly these objectives; it excludes all other combinations."""
    columns = zip(*(objective.primitives for objective in objectives), strict=True)
    stages: dict[Stage, tuple[Primitive, ...]] = {
        stage: tuple(dict.fromkeys(column)) for stage, column in zip(STAGES, columns, strict=True)
    }
    whole = Space(name, summary, stages)
    others = {o.name for o in whole.combinations} - {o.name for o in objectives}
    notes = _notes(stages, registry)
    return Space(name, summary, stages, frozenset(others), notes, registry.end_task)


def _notes(stages: Mapping[Stage, tuple[Primitive, ...]], registry: "Registry") -> tuple[str, ...]:
    listed = [primitive for primitives in stages.values() for primitive in primitives]
    return tuple(registry.unprovided_traits(listed))


def _registered(entry: SpaceEntry, registry: "Registry") -> Space:
    label = f"space {entry.name} of {entry.origin}"
    if isinstance(entry.source, Path):
        content, source = read_space_file(entry.source)
    else:
        source = Source(label)
        given = {"name": entry.name, "summary": entry.summary, **entry.source}
        content = validate_space(given, source)
    if content.name != entry.name:
        raise ConfigError(f"{label} calls itself {content.name} in {source.label}; use one name")
    return _resolve(content, source, registry.as_meant_by(entry.origin.distribution))


def _resolve(content: SpaceFile, source: Source, registry: "Registry") -> Space:
    """Look up everything that a space lists."""
    stages: dict[Stage, tuple[Primitive, ...]] = {
        stage: _primitives(content, stage, source, registry) for stage in STAGES
    }
    excluded = frozenset(content.exclude)
    notes = _notes(stages, registry)
    space = Space(content.name, content.summary, stages, excluded, notes, registry.end_task)
    _check_excluded(content, space, source)
    return space


def _primitives(
    content: SpaceFile, stage: Stage, source: Source, registry: "Registry"
) -> tuple[Primitive, ...]:
    found: dict[str, Primitive] = {}
    for index, listed in enumerate(getattr(content, stage)):
        where = source.at((stage, index))
        try:
            primitive = registry.primitive(stage, listed.name)
        except (UnknownNameError, AmbiguousNameError) as error:
            raise type(error)(f"{where}: {error}") from error
        if primitive.qualified_name in found:
            raise ConfigError(f"{where}: the {stage} {listed.name} is listed twice; remove one")
        found[primitive.qualified_name] = primitive.with_options(listed.options)
    return tuple(found.values())


def _check_excluded(content: SpaceFile, space: Space, source: Source) -> None:
    names = {objective.name for objective in space.combinations}
    for index, name in enumerate(content.exclude):
        where = source.at(("exclude", index))
        if name not in names:
            hint = did_you_mean(name, names, "its combinations are")
            raise ConfigError(f"{where}: {name} is not a combination of this space; {hint}")
