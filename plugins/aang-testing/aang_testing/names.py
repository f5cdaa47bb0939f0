"""What may be wrong with the names of a plug-in: others have them, or a trait looks misspelled."""

import difflib
from collections.abc import Iterable

from aang_core.plugins import Plugins
from aang_core.plugins.primitive import Origin, Primitive, Stage
from aang_core.plugins.registry import PREFIX, READS_END_TASK_HEAD, Registry, standard_plugins

_NEAR = 0.8
"""Similarity from which a trait that nobody requires is taken for a misspelling of another."""


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
    for kind, table in (
        ("space", registry.spaces),
        ("objective", registry.objectives),
        ("recipe", registry.recipes),
        ("command", registry.commands),
        ("grid", registry.grids),
    ):
        owners: dict[str, set[str]] = {}
        for entry in table:
            owners.setdefault(entry.name, set()).add(entry.origin.distribution)
        sentences += [
            _taken(kind, name, names, origin.distribution)
            for name, names in owners.items()
            if origin.distribution in names
        ]
    return [sentence for sentence in sentences if sentence]


def taken_primitive(stage: Stage, name: str, registry: Registry, distribution: str) -> str:
    """A sentence if others than ``distribution`` have a primitive of this name; else empty."""
    owners = {p.origin.distribution for p in registry.primitives(stage) if p.name == name}
    return _taken(stage, name, owners, distribution)


def taken_plugin(distribution: str, entry_point: str, plugins: Plugins) -> str:
    """A sentence if a plug-in of this name exists; else empty."""
    origins = [record.origin for record in plugins.records]
    if distribution in {*standard_plugins(), *(origin.distribution for origin in origins)}:
        return f"there is a plug-in {distribution}, which pip would replace by the new one"
    for origin in origins:
        if origin.entry_point == entry_point:
            return (
                f"{origin.distribution} has an entry point {entry_point} too, and only one of the "
                "two is loaded"
            )
    return ""


def _taken(kind: str, name: str, owners: Iterable[str], distribution: str) -> str:
    others = sorted({*owners} - {distribution})
    if not others:
        return ""
    return (
        f"the {kind} {name} is a name of {' and '.join(others)} too; whoever means this one has to "
        f"write {distribution}:{name}, so choose another name"
    )


def misspelled_traits(
    primitives: Iterable[Primitive], registered: Iterable[Primitive]
) -> list[str]:
    """A sentence for each trait that one of ``primitives`` provides and seems to misspell.

    Nobody requires it, no other plug-in provides it, and it is similar to one that others use.

    Args:
        primitives: primitives of one plug-in.
        registered: all primitives.
    """
    primitives, registered = list(primitives), list(registered)
    owners = {primitive.origin for primitive in primitives}
    used = frozenset({READS_END_TASK_HEAD}).union(
        *(primitive.requires for primitive in registered),
        *(primitive.provides for primitive in registered if primitive.origin not in owners),
    )
    return [
        f"the {primitive.stage} {primitive.key} provides {trait}, which nobody requires; did you "
        f"mean {near[0]}?"
        for primitive in primitives
        for trait in sorted(primitive.provides - used)
        if not trait.startswith(PREFIX)
        if (near := difflib.get_close_matches(trait, sorted(used), n=1, cutoff=_NEAR))
    ]
