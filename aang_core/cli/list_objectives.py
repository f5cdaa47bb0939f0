"""``aang list-objectives``: the named objectives, or all legal ones."""

import itertools
import json
import math

import click

from aang_core.cli.output import echo
from aang_core.cli.tables import print_table
from aang_core.errors import AangError, ConfigError
from aang_core.objectives.objective import Objective
from aang_core.plugins import Plugins
from aang_core.plugins.primitive import STAGES
from aang_core.plugins.registry import ObjectiveEntry, Registry

MOST_COMBINATIONS = 200_000
"""Combinations of primitives that are tried, in some seconds; all of AANG's make some thousands."""


@click.command("list-objectives")
@click.option("--named", is_flag=True, help="Only the named ones, with their names.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def list_objectives(plugins: Plugins, named: bool, as_json: bool) -> None:
    """List every legal objective that the installed primitives make, or those with names.

    A named objective can be used as a space: aang train --space NAME.
    """
    registry = plugins.registry
    if named:
        _print_named([_row(entry, registry) for entry in registry.objectives], as_json)
        return
    stages = [list(registry.primitives(stage)) for stage in STAGES]
    count = math.prod(map(len, stages))
    if count > MOST_COMBINATIONS:
        raise ConfigError(
            f"the {' × '.join(str(len(primitives)) for primitives in stages)} primitives make "
            f"{count:,} combinations, and at most {MOST_COMBINATIONS:,} are listed; leave plug-ins "
            "out with aang --disable-plugin NAME, or see the objectives of one space with aang "
            "show-space"
        )
    combinations = itertools.product(*stages)
    names = [o.name for o in itertools.starmap(Objective, combinations) if o.legal]
    if as_json:
        echo(json.dumps(names, indent=2))
        return
    for name in names:
        echo(name)


def _print_named(rows: list[dict[str, str | None]], as_json: bool) -> None:
    if as_json:
        echo(json.dumps(rows, indent=2))
    elif rows:
        header = ["name", "objective", "summary", "distribution", "version", "error"]
        print_table(header, [[value or "" for value in row.values()] for row in rows], lead=2)
    else:
        echo("There are no named objectives.")


def _row(entry: ObjectiveEntry, registry: Registry) -> dict[str, str | None]:
    problem: str | None = None
    try:
        theirs = registry.as_meant_by(entry.origin.distribution)
        parsed = [Objective.parse(objective, theirs) for objective in entry.objectives]
        problem = "; ".join(filter(None, (o.illegal_because for o in parsed))) or None
    except AangError as error:
        problem = str(error)
    return {
        "name": entry.name,
        "objective": " + ".join(entry.objectives),
        "summary": entry.summary,
        "distribution": entry.origin.distribution,
        "version": entry.origin.version,
        "error": problem,
    }
