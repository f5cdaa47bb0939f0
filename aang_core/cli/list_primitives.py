"""``aang list-primitives``: the primitives of every stage, and the weighters."""

import json
from typing import get_args

import click

from aang_core.cli.loaded import loaded_plugins, tell_failures
from aang_core.cli.output import echo
from aang_core.cli.tables import print_table
from aang_core.errors import UnknownNameError
from aang_core.plugins import Plugins
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive, Stage


@click.command("list-primitives")
@click.option("--stage", type=click.Choice(get_args(Stage)), help="Only this stage.")
@click.option("--plugin", metavar="NAME", help="Only this plug-in, by distribution or entry point.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_context
def list_primitives(
    context: click.Context, stage: Stage | None, plugin: str | None, as_json: bool
) -> None:
    """List the primitives of every stage, and the weighters.

    Four primitives can be combined if together they provide every trait that any of them requires.
    """
    plugins = loaded_plugins(context)
    primitives = plugins.registry.primitives(stage)
    if plugin is not None:
        _check_plugin(plugin, plugins)
        primitives = tuple(
            p for p in primitives if plugin in (p.origin.distribution, p.origin.entry_point)
        )
    if as_json:
        echo(json.dumps([_as_json(primitive) for primitive in primitives], indent=2))
    elif primitives:
        header = ["stage", "name", "summary", "provides", "requires", "distribution", "version"]
        print_table(header, [_as_row(primitive) for primitive in primitives], lead=2)
    else:
        echo("There are no such primitives.")
    tell_failures(context, to_stderr=as_json)


def _check_plugin(name: str, plugins: Plugins) -> None:
    origins = [record.origin for record in plugins.records]
    known = {name for o in origins for name in (o.distribution, o.entry_point)}
    if name not in known:
        hint = did_you_mean(name, known, "there are")
        raise UnknownNameError(f"there is no plug-in {name}; {hint}")


def _as_json(primitive: Primitive) -> dict[str, object]:
    return {
        "stage": primitive.stage,
        "name": primitive.name,
        "summary": primitive.summary,
        "provides": sorted(primitive.provides),
        "requires": sorted(primitive.requires),
        "distribution": primitive.origin.distribution,
        "version": primitive.origin.version,
    }


def _as_row(primitive: Primitive) -> list[str]:
    return [
        primitive.stage,
        primitive.name,
        primitive.summary,
        ", ".join(sorted(primitive.provides)),
        ", ".join(sorted(primitive.requires)),
        primitive.origin.distribution,
        primitive.origin.version,
    ]
