"""``aang list-spaces`` and ``aang show-space``: the objectives of spaces."""

import json

import click

from aang_core.cli.output import echo, note
from aang_core.cli.tables import print_table
from aang_core.errors import AangError
from aang_core.objectives.space import Space, load_space
from aang_core.plugins import Plugins
from aang_core.plugins.registry import Registry, SpaceEntry


@click.command("list-spaces")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def list_spaces(plugins: Plugins, as_json: bool) -> None:
    """List the spaces of objectives, and how many objectives each has.

    A space that lists a primitive which is not installed has an error instead.
    """
    registry = plugins.registry
    rows = [_row(entry, registry) for entry in registry.spaces]
    if as_json:
        echo(json.dumps(rows, indent=2))
    elif rows:
        header = ["name", "summary", "objectives", "distribution", "version", "error"]
        cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
        print_table(header, cells)
    else:
        echo("There are no spaces.")


def _row(entry: SpaceEntry, registry: Registry) -> dict[str, object]:
    count: int | None = None
    problem: str | None = None
    # Looked up by its full name: two plug-ins may each have a space of the same short name.
    try:
        space = load_space(f"{entry.origin.distribution}:{entry.name}", registry)
        count = len(space.objectives)
    except AangError as error:
        problem = str(error)
    return {
        "name": entry.name,
        "summary": entry.summary,
        "objectives": count,
        "distribution": entry.origin.distribution,
        "version": entry.origin.version,
        "error": problem,
    }


@click.command("show-space")
@click.argument("space", metavar="NAME|FILE.yaml")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def show_space(plugins: Plugins, space: str, as_json: bool) -> None:
    """Show a space's objectives, and the combinations that were dropped and why."""
    shown = load_space(space, plugins.registry)
    objectives = [objective.name for objective in shown.objectives]
    if as_json:
        dropped = [dropped._asdict() for dropped in shown.dropped]
        passes = {key: [o.name for o in group] for key, group in shown.shared_passes.items()}
        document = {
            "name": shown.name,
            "objectives": objectives,
            "shared_passes": passes,
            "dropped": dropped,
            "notes": list(shown.notes),
        }
        echo(json.dumps(document, indent=2))
    else:
        echo(f"{shown.name}: {shown.summary}" if shown.summary else shown.name)
        echo(f"\n{len(objectives)} objective{'' if len(objectives) == 1 else 's'}")
        for name in objectives:
            echo(f"  {name}")
        _echo_passes(shown)
        echo(f"\n{len(shown.dropped)} dropped")
        for name, reason in shown.dropped:
            echo(f"  {name}: {reason}")
        for sentence in shown.notes:
            note(sentence)


def _echo_passes(space: Space) -> None:
    """Print which objectives share a pass through the encoder, if any do."""
    if not space.shared_passes:
        return
    echo("\nsharing one pass through the encoder where a step trains several of them")
    for key, group in space.shared_passes.items():
        outputs = ", ".join(objective.output.key for objective in group)
        echo(f"  {'the pass of the end task' if key == 'end-task' else key}: {outputs}")
