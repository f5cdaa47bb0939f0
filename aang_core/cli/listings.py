"""``aang list-…``, ``aang show-space`` and ``aang plugins``: what the plug-ins have registered."""

import itertools
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

import click

from aang_core.cli.app import loaded_plugins, tell_failures
from aang_core.cli.output import echo, note, print_table
from aang_core.errors import AangError
from aang_core.plugins import Plugins
from aang_core.plugins.loading import SLOW, PluginRecord, check_known
from aang_core.plugins.primitive import (
    STAGES,
    Entry,
    ObjectiveEntry,
    Primitive,
    SpaceEntry,
    Stage,
    normalised,
)
from aang_core.plugins.registry import Registry

if TYPE_CHECKING:
    from aang_core.objectives.space import Space

Row = dict[str, Any]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def _print_rows(rows: list[Row], as_json: bool, nothing: str, lead: int = 1) -> None:
    """Print rows of the same keys as JSON, or as a table with the keys as its header."""
    if as_json:
        echo(json.dumps(rows, indent=2))
    elif rows:
        header = [name.replace("_", " ") for name in rows[0]]
        print_table(header, [[_cell(value) for value in row.values()] for row in rows], lead=lead)
    else:
        echo(nothing)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else str(value)


@click.command("list-primitives")
@click.option("--stage", type=click.Choice(get_args(Stage)), help="Only this stage.")
@click.option("--plugin", metavar="NAME", help="Only this plug-in, by distribution or entry point.")
@as_json
@click.pass_context
def list_primitives(
    context: click.Context, stage: Stage | None, plugin: str | None, as_json: bool
) -> None:
    """List the primitives of every stage, and the weighters.

    Four primitives can be combined if together they provide every trait that any of them requires.
    """
    plugins = loaded_plugins(context)
    rows = [
        _primitive(primitive)
        for primitive in plugins.registry.primitives(stage)
        if plugin is None or normalised(plugin) in primitive.origin.names
    ]
    if plugin is not None:
        check_known([plugin], (record.origin for record in plugins.records))
    _print_rows(rows, as_json, "There are no such primitives.", lead=2)
    tell_failures(context, to_stderr=as_json)


def _primitive(primitive: Primitive) -> Row:
    return {
        "stage": primitive.stage,
        "name": primitive.name,
        "summary": primitive.summary,
        "provides": sorted(primitive.provides),
        "requires": sorted(primitive.requires),
        **_origin(primitive),
    }


@click.command("list-objectives")
@click.option("--named", is_flag=True, help="Only the named ones, with their names.")
@as_json
@click.pass_obj
def list_objectives(plugins: Plugins, named: bool, as_json: bool) -> None:
    """List every legal objective that the installed primitives make, or those with names.

    A named objective can be used as a space: aang train --space NAME.
    """
    from aang_core.objectives.objective import Objective

    registry = plugins.registry
    if named:
        rows = [_objective(entry, registry) for entry in registry.objectives]
        _print_rows(rows, as_json, "There are no named objectives.", lead=2)
        return
    combinations = itertools.product(*(registry.primitives(stage) for stage in STAGES))
    legal = [o.name for o in itertools.starmap(Objective, combinations) if o.legal]
    echo(json.dumps(legal, indent=2) if as_json else "\n".join(legal))


def _objective(entry: ObjectiveEntry, registry: Registry) -> Row:
    from aang_core.objectives.objective import Objective

    theirs, problem = registry.as_meant_by(entry.origin.distribution), ""
    try:
        parsed = [Objective.parse(objective, theirs) for objective in entry.objectives]
        problem = "; ".join(filter(None, (objective.illegal_because for objective in parsed)))
    except AangError as error:
        problem = str(error)
    row = {"name": entry.name, "objective": " + ".join(entry.objectives), "summary": entry.summary}
    return row | _origin(entry) | {"error": problem or None}


@click.command("list-spaces")
@as_json
@click.pass_obj
def list_spaces(plugins: Plugins, as_json: bool) -> None:
    """List the spaces of objectives, and how many objectives each has.

    A space that lists a primitive which is not installed has an error instead.
    """
    rows = [_space(entry, plugins.registry) for entry in plugins.registry.spaces]
    _print_rows(rows, as_json, "There are no spaces.")


def _space(entry: SpaceEntry, registry: Registry) -> Row:
    from aang_core.objectives.space import load_space

    count: int | None = None
    problem: str | None = None
    try:
        # By its full name: two plug-ins may each have a space of the same short name.
        space = load_space(f"{entry.origin.distribution}:{entry.name}", registry)
        count = len(space.objectives)
    except AangError as error:
        problem = str(error)
    row = {"name": entry.name, "summary": entry.summary, "objectives": count}
    return row | _origin(entry) | {"error": problem}


def _origin(entry: Entry) -> Row:
    return {"distribution": entry.origin.distribution, "version": entry.origin.version}


@click.command("show-space")
@click.argument("space", metavar="NAME|FILE.yaml")
@as_json
@click.pass_obj
def show_space(plugins: Plugins, space: str, as_json: bool) -> None:
    """Show a space's objectives, and the combinations that were dropped and why."""
    from aang_core.objectives.space import load_space

    shown = load_space(space, plugins.registry)
    if as_json:
        document = {
            "name": shown.name,
            "objectives": [objective.name for objective in shown.objectives],
            "dropped": [dropped._asdict() for dropped in shown.dropped],
            "notes": list(shown.notes),
        }
        echo(json.dumps(document, indent=2))
        return
    for line in _in_words(shown):
        echo(line)
    for sentence in shown.notes:
        note(sentence)


def _in_words(space: "Space") -> Iterable[str]:
    yield f"{space.name}: {space.summary}" if space.summary else space.name
    count = len(space.objectives)
    yield f"\n{count} objective{'' if count == 1 else 's'}"
    yield from (f"  {objective.name}" for objective in space.objectives)
    yield f"\n{len(space.dropped)} dropped"
    yield from (f"  {name}: {reason}" for name, reason in space.dropped)


@click.command("plugins")
@as_json
@click.option("--check", is_flag=True, help="Exit with status 1 if a plug-in failed to load.")
@click.pass_context
def plugins(context: click.Context, as_json: bool, check: bool) -> None:
    """List the plug-ins and whether they loaded.

    A plug-in is ok, disabled (by --disable-plugin or AANG_DISABLE_PLUGINS), shadowed by another
    with the same entry point, or failed, with the reason. Seconds are what loading the plug-in adds
    to every command.
    """
    found = loaded_plugins(context)
    rows = [_plugin(record) for record in found.records]
    if as_json:
        for row, record in zip(rows, found.records, strict=True):
            row["warnings"] = list(record.warnings)
    _print_rows(rows, as_json, "")
    for record in [] if as_json else found.records:
        for warning in record.warnings:
            note(f"plug-in {record}: {warning}")
        if record.seconds > SLOW:
            note(
                f"plug-in {record} took {record.seconds:.1f} s to load, and every command waits "
                f"for it; aang check-plugin {record.origin.distribution} says what its authors can "
                f"do, --disable-plugin {record.origin.entry_point} leaves it out"
            )
    if check and found.failed:
        context.exit(1)


def _plugin(record: PluginRecord) -> Row:
    return {
        "distribution": record.origin.distribution,
        "version": record.origin.version,
        "entry_point": record.origin.entry_point,
        "status": record.status,
        "seconds": round(record.seconds, 3) if record.status in ("ok", "failed") else None,
        "error": record.error,
    }
