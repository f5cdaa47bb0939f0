"""``aang plugins``: the plug-ins, and whether each loaded."""

import json

import click

from aang_core.cli.loaded import loaded_plugins
from aang_core.cli.output import echo, note
from aang_core.cli.tables import print_table
from aang_core.plugins.loading import SLOW


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--check", is_flag=True, help="Exit with status 1 if a plug-in failed to load.")
@click.pass_context
def plugins(context: click.Context, as_json: bool, check: bool) -> None:
    """List the plug-ins and whether they loaded.

    A plug-in is ok, disabled (by --disable-plugin or AANG_DISABLE_PLUGINS), shadowed by another
    with the same entry point, or failed, with the reason.
    Seconds are what loading the plug-in adds to every
    command.
    """
    found = loaded_plugins(context)
    rows = [
        {
            "distribution": record.origin.distribution,
            "version": record.origin.version,
            "entry_point": record.origin.entry_point,
            "status": record.status,
            "seconds": round(record.seconds, 3) if record.status in ("ok", "failed") else None,
            "error": record.error,
            "warnings": list(record.warnings),
        }
        for record in found.records
    ]
    if as_json:
        echo(json.dumps(rows, indent=2))
    else:
        header = ["distribution", "version", "entry_point", "status", "seconds", "error"]
        cells = [["" if row[name] is None else str(row[name]) for name in header] for row in rows]
        print_table([name.replace("_", " ") for name in header], cells)
        for record in found.records:
            name = f"plug-in {record.origin.entry_point} ({record.origin})"
            for warning in record.warnings:
                note(f"{name}: {warning}")
            if record.seconds > SLOW:
                note(
                    f"{name} took {record.seconds:.1f} s to load, and every command waits for it; "
                    f"aang check-plugin {record.origin.distribution} says what its authors can do, "
                    f"--disable-plugin {record.origin.entry_point} leaves it out"
                )
    if check and found.failed:
        context.exit(1)
