"""``aang check-plugin``: does a plug-in keep its contracts?"""

import click
from aang.config.values import parse_settings

from aang_core.cli.app import output_of_plugins
from aang_core.cli.output import echo
from aang_core.errors import AangError


@click.command(short_help="Check that a plug-in keeps its contracts.")
@click.argument("plugin", metavar="DIST|PATH")
@click.option(
    "--set",
    "settings",
    metavar="NAME.OPTION=VALUE",
    multiple=True,
    help="Check a primitive or weighter with this option instead of its default; can be repeated.",
)
def check_plugin(plugin: str, settings: tuple[str, ...]) -> None:
    """Run every check of a plug-in: an installed distribution, its folder, or a file FILE.py.

    Prints one line per check and, for a check that fails, what was expected and what to do. Other
    plug-ins are left out meanwhile, except the standard ones and those that the plug-in depends on.
    """
    from aang_testing.conformance import checks_of, require_path, warnings_of

    plugin = require_path(plugin)
    with output_of_plugins():
        checks = checks_of(plugin, parse_settings(settings))
    failed = 0
    for check in checks:
        try:
            check.run()
        # A plug-in is somebody else's code and may raise anything.
        except (Exception, SystemExit) as error:
            failed += 1
            echo(f"FAILED  {check.name}", fg="red")
            echo(f"        {_told(error)}\n        To do: {check.advice}.")
        else:
            echo(f"passed  {check.name}")
    for warning in warnings_of(plugin):
        echo(f"warning {warning}", fg="yellow")
    echo(f"{len(checks) - failed} of {len(checks)} checks passed.")
    if failed:
        raise SystemExit(1)


def _told(error: BaseException) -> str:
    kind = "" if isinstance(error, AssertionError | AangError) else f"{type(error).__name__}: "
    # Hypothesis appends lines that say how to reproduce the failure.
    first = str(error).strip().splitlines()
    return kind + (first[0] if first else "it says nothing")
