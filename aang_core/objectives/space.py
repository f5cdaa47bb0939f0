"""Spaces: named lists of primitives per stage, whose legal combinations are the objectives.

A space file has a name, the four stages and little else:

```yaml
name: mine
summary: what it is for            # optional
data: [task]
transform: [bert-op, mask]
representation:
  - bidirectional
  - random-factorized: {pairs: 0.6}  # a primitive with options
output: [denoise, end-task]
exclude: [task/mask/bidirectional/end-task]  # optional
```
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.functional_validators import BeforeValidator

from aang_core.errors import AmbiguousNameError, ConfigError, UnknownNameError
from aang_core.objectives.objective import Objective
from aang_core.plugins.primitive import STAGES, Primitive, SpaceEntry, Stage
from aang_core.plugins.registry import ONE_CLASS, EndTaskTraits, Registry, did_you_mean
from aang_core.storage.yaml_source import Source, parse_yaml


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
        notes: what is odd about it, such as a primitive that requires a trait which nothing
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
    def dropped(self) -> tuple[Dropped, ...]:
        """All other combinations, each with its reason."""
        kept = set(self.objectives)
        return tuple(
            Dropped(o.name, o.illegal_because or f"the space {self.name} excludes it")
            for o in self.combinations
            if o not in kept
        )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Listed(_Strict):
    """A primitive as listed in a space."""

    name: Annotated[str, StringConstraints(min_length=1)]
    options: dict[str, Any] = {}


def _as_listed(value: object) -> object:
    """Read ``name`` or ``{name: {option: value}}``."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        if isinstance(name, str) and isinstance(options, Mapping):
            return {"name": name, "options": dict(options)}
    raise ValueError(
        f"{value!r} is neither the name of a primitive nor one name with its options, as in "
        "random-factorized: {pairs: 0.6}"
    )


_Stage = Annotated[
    list[Annotated[Listed, BeforeValidator(_as_listed)]],
    Field(min_length=1),
]


class SpaceFile(_Strict):
    """The validated content of a space file."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9+-]+$")]
    summary: str = ""
    data: _Stage
    transform: _Stage
    representation: _Stage
    output: _Stage
    exclude: list[str] = []


def load_space(source: str | Path, registry: Registry) -> Space:
    """Look up a space, or read it from a file.

    Args:
        source: the name of a registered space, or a file ``FILE.yaml``. A named objective such as
            ``tapt``, a name of several objectives such as ``elmo``, and objectives written as
            ``data/transform/representation/output``, with commas between several, each give a space
            of exactly these objectives.
        registry: where the names are looked up.

    Raises:
        ConfigError: the file cannot be read or does not hold a space; the message names file and
            line. Or one of several objectives is not legal.
        UnknownNameError: there is no such space or objective, or the space lists a primitive that
            is not registered.
        AmbiguousNameError: the space lists a primitive by a short name that two plug-ins own.

    Examples:
        >>> from aang_core import load_plugins, load_space
        >>> [str(objective) for objective in load_space("tapt", load_plugins().registry).objectives]
        ['task/bert-op/bidirectional/denoise']
    """
    if isinstance(source, Path) or source.endswith((".yaml", ".yml")):
        return _resolve(*read_space_file(Path(source)), registry)
    if "/" in source:
        written = [Objective.parse(name, registry) for name in source.split(",")]
        for objective in written if len(written) > 1 else ():
            # The others would be trained without it, unnoticed.
            if objective.illegal_because:
                raise ConfigError(f"{objective}: {objective.illegal_because}")
        return _of_objectives(source, "", list(dict.fromkeys(written)), registry)
    if source in registry.objectives and source not in registry.spaces:
        named = registry.objectives.find(source)
        theirs = registry.as_meant_by(named.origin.distribution)
        parsed = [Objective.parse(objective, theirs) for objective in named.objectives]
        return _of_objectives(source, named.summary, parsed, registry)
    return _registered(registry.spaces.find(source), registry)


def name_in_full(name: str, registry: Registry) -> str:
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
    name: str, summary: str, objectives: Sequence[Objective], registry: Registry
) -> Space:
    """Make the space of exactly these objectives; it excludes all other combinations."""
    columns = zip(*(objective.primitives for objective in objectives), strict=True)
    stages: dict[Stage, tuple[Primitive, ...]] = {
        stage: tuple(dict.fromkeys(column)) for stage, column in zip(STAGES, columns, strict=True)
    }
    others = {o.name for o in Space(name, summary, stages).combinations}
    others -= {o.name for o in objectives}
    return _space(name, summary, stages, others, registry)


def _space(
    name: str,
    summary: str,
    stages: Mapping[Stage, tuple[Primitive, ...]],
    excluded: Iterable[str],
    registry: Registry,
) -> Space:
    notes = registry.unprovided_traits(itertools.chain(*stages.values()))
    return Space(name, summary, stages, frozenset(excluded), tuple(notes), registry.end_task)


def _registered(entry: SpaceEntry, registry: Registry) -> Space:
    if isinstance(entry.source, Path):
        content, source = read_space_file(entry.source)
    else:
        source = Source(f"space {entry.name} of {entry.origin}")
        given = {"name": entry.name, "summary": entry.summary, **entry.source}
        content = validate_space(given, source)
    return _resolve(content, source, registry.as_meant_by(entry.origin.distribution))


def _resolve(content: SpaceFile, source: Source, registry: Registry) -> Space:
    """Look up everything that a space lists."""
    stages = {stage: _primitives(content, stage, source, registry) for stage in STAGES}
    space = _space(content.name, content.summary, stages, content.exclude, registry)
    names = {objective.name for objective in space.combinations}
    for index, name in enumerate(content.exclude):
        if name not in names:
            hint = did_you_mean(name, names, "its combinations are")
            where = source.at(("exclude", index))
            raise ConfigError(f"{where}: {name} is not a combination of this space; {hint}")
    return space


def _primitives(
    content: SpaceFile, stage: Stage, source: Source, registry: Registry
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


def read_space_file(path: Path) -> tuple[SpaceFile, Source]:
    """Read and validate a space file.

    Raises:
        ConfigError: it cannot be read, is not YAML, or does not hold a space; the message names the
            line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the space file {path} cannot be read: {error.strerror}") from error
    return parse_space_file(content, str(path))


def parse_space_file(content: str | bytes, label: str) -> tuple[SpaceFile, Source]:
    """Validate the content of a space file; raises like :func:`read_space_file`."""
    value, source = parse_yaml(content, label)
    return validate_space(value, source), source


def validate_space(value: object, source: Source) -> SpaceFile:
    """Validate a space from a file or from a plug-in.

    Raises:
        ConfigError: it is not a space; the message says where and what was expected.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source.at(())}: a space is a mapping with the keys "
            f"{', '.join(SpaceFile.model_fields)}, not {type(value).__name__}"
        )
    try:
        return SpaceFile.model_validate(dict(value))
    except ValidationError as error:
        # A misspelled key is also a missing key; that it is unknown is the more helpful message.
        first = min(error.errors(include_url=False), key=lambda e: e["type"] not in _UNKNOWN_KEY)
        raise ConfigError(f"{source.at(first['loc'])}: {_explain(first)}") from error


_UNKNOWN_KEY = ("extra_forbidden", "invalid_key")


def _explain(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, in the terms of the file."""
    key = ".".join(map(str, error["loc"][:1]))
    match error["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden" | "invalid_key" if key:
            return f"unknown key {key}; {did_you_mean(key, SpaceFile.model_fields, 'the keys are')}"
        case "too_short":
            return f"{key} is empty; list at least one primitive"
        case "value_error":
            return f"{key}: {error['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{key}: {error['input']!r}: {error['msg']}"
