"""Names that a plug-in is about to share with others."""

from collections.abc import Iterable

from aang_core.plugins.loading import Plugins
from aang_core.plugins.primitive import Origin, Stage
from aang_core.plugins.registry import Registry
from aang_core.plugins.standard import (
    STANDARD,
    STANDARD_COMMANDS,
    STANDARD_GRIDS,
    STANDARD_OBJECTIVES,
    STANDARD_RECIPES,
    STANDARD_SPACES,
)


def taken_names(origin: Origin, registry: Registry) -> list[str]:
    """A sentence for each name that a plug-in registers and others register too.

    Args:
        origin: the plug-in.
        registry: everything that is registered, by all plug-ins.
    """
    sentences = [
        taken_primitive(primitive.stage, primitive.name, registry, origin.distribution)
        for primitive in registry.primitives()
        if primitive.origin == origin
    ]
    for kind, table, standard in (
        ("space", registry.spaces, STANDARD_SPACES),
        ("objective", registry.objectives, STANDARD_OBJECTIVES),
        ("recipe", registry.recipes, STANDARD_RECIPES),
        ("command", registry.commands, STANDARD_COMMANDS),
        ("grid", registry.grids, STANDARD_GRIDS),
    ):
        owners: dict[str, set[str]] = {name: {owner} for name, owner in standard.items()}
        for entry in table:
            owners.setdefault(entry.name, set()).add(entry.origin.distribution)
        sentences += [
            _sentence(kind, entry.name, owners[entry.name], origin.distribution)
            for entry in table
            if entry.origin == origin
        ]
    return [sentence for sentence in sentences if sentence]


def taken_primitive(stage: Stage, name: str, registry: Registry, distribution: str) -> str:
    """A sentence if others than ``distribution`` have a primitive of this name; else empty."""
    owners = {p.origin.distribution for p in registry.primitives(stage) if p.name == name}
    return _sentence(stage, name, owners | {STANDARD[stage].get(name, distribution)}, distribution)


def taken_plugin(distribution: str, entry_point: str, plugins: Plugins) -> str:
    """A sentence if a plug-in of this name exists; else empty."""
    tables = (*STANDARD.values(), STANDARD_COMMANDS, STANDARD_GRIDS, STANDARD_RECIPES)
    origins = [record.origin for record in plugins.records]
    existing = {origin.distribution for origin in origins}
    existing |= {name for table in tables for name in table.values()}
    if distribution in existing:
        return f"there is a plug-in {distribution}, which pip would replace by the new one"
    owners = [o.distribution for o in origins if o.entry_point == entry_point]
    if owners:
        return (
            f"{owners[0]} has an entry point {entry_point} too, and only one of the two is loaded"
        )
    return ""


def _sentence(kind: str, name: str, owners: Iterable[str], distribution: str) -> str:
    others = sorted({*owners} - {distribution})
    if not others:
        return ""
    return (
        f"the {kind} {name} is a name of {' and '.join(others)} too; whoever means this one has to "
        f"write {distribution}:{name}, so choose another name"
    )
