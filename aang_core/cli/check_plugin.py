"""``aang check-plugin``: does a plug-in keep its contracts?"""

import click

from aang_core.cli.output import echo
from aang_core.errors import ConfigError


@click.command(short_help="Check that a plug-in keeps its contracts.")
@click.argument("plugin", metavar="DIST|PATH")
def check_plugin(plugin: str) -> None:
    """Run every check of a plug-in: an installed distribution, its folder, or a file FILE.py.

    Prints one line per check and, for a check that fails, what was expected and what to do.
    """
    try:
        from aang_core.testing.conformance import checks_of, require_path
    except ImportError as error:
        raise ConfigError(
            f"the checks need {error.name}; pip install 'aang-core[testing]'"
        ) from error

    checks = checks_of(require_path(plugin))
    failed = 0
    for check in checks:
        try:
            check.run()
        except KeyboardInterrupt:
            raise
        # A plug-in is somebody else's code and may raise anything, including SystemExit.
        except BaseException as error:
            failed += 1
            echo(f"FAILED  {check.name}", fg="red")
            echo(f"        {_told(error)}\n        To do: {check.advice}.")
        else:
            echo(f"passed  {check.name}")
    echo(f"{len(checks) - failed} of {len(checks)} checks passed.")
    if failed:
        raise SystemExit(1)


def _told(error: BaseException) -> str:
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    # Hypothesis appends lines that say how to reproduce the failure.
    first = str(error).strip().splitlines()
    return kind + (first[0] if first else "it says nothing")
