"""The ``aang`` command group: its global options, and the plug-ins that its commands come from."""

import contextlib
import errno
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from aang_core.cli.output import echo, printable
from aang_core.cli.rare_options import HELP_ALL, RareOption
from aang_core.errors import AangError, SharedError, UnknownNameError
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.primitive import CORE, Entry, TargetEntry
from aang_core.plugins.registry import Registry
from aang_core.tasks.processes import is_first

_KEY = "aang_core.plugins"


def output_of_plugins() -> AbstractContextManager[Any]:
    """Send what plug-ins print in the block to standard error.

    Standard output belongs to the command: a plug-in that prints would spoil ``--json``.
    """
    return contextlib.redirect_stdout(sys.stderr)


def loaded_plugins(context: click.Context) -> Plugins:
    """All plug-ins, subject to ``--plugin`` and ``--disable-plugin``; loaded on first use.

    Raises:
        UnknownNameError: ``--disable-plugin`` names an unknown plug-in.
    """
    if _KEY not in context.meta:
        options = context.find_root().params
        with output_of_plugins():
            context.meta[_KEY] = load_plugins(
                disable=options.get("disable", ()),
                local=[str(path) for path in options.get("local", ())],
            )
    plugins: Plugins = context.meta[_KEY]
    return plugins


def plugin_options(context: click.Context) -> list[str]:
    """The global options that select plug-ins, so that other processes load the same ones.

    Paths are absolute, since another process may have another working directory.
    """
    options = context.find_root().params
    files = [str(path.absolute()) for path in options.get("local", ())]
    given = [("--plugin", files), ("--disable-plugin", options.get("disable", ()))]
    return [part for option, values in given for value in values for part in (option, value)]


def tell_failures(context: click.Context, *, to_stderr: bool = True) -> None:
    """Report every plug-in that failed to load and why, with its traceback under ``--debug``.

    Plug-ins that are shadowed by another one are reported, too: the user may want them.
    """
    plugins = loaded_plugins(context)
    for record in (*plugins.shadowed, *plugins.failed):
        echo(record.notice, err=to_stderr)
        if context.find_root().params.get("debug") and record.exception is not None:
            lines = traceback.format_exception(record.exception)
            echo("".join(lines), err=to_stderr, nl=False)


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _path(
    kind: str, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type=kind)]


def _registered(
    entries: Callable[[Registry], Iterable[Entry]],
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    named = {e.name: e.summary for e in entries(loaded_plugins(context).registry)}
    found = [CompletionItem(n, help=s) for n, s in named.items() if n.startswith(incomplete)]
    # Only if no name fits, because shells show either names or files.
    if not found and parameter.name == "space":
        return [CompletionItem(incomplete, type="file")]
    return found


COMPLETIONS: Mapping[str, Complete] = {
    "weighter": partial(_registered, lambda registry: registry.primitives("weighter")),
    "space": partial(_registered, lambda registry: [*registry.spaces, *registry.objectives]),
    "recipe": partial(_registered, lambda registry: registry.recipes),
    "model": partial(_path, "dir"),
    **dict.fromkeys(("domain", "out_of_domain", "unlabelled"), partial(_path, "file")),
}
"""The functions that complete the value of an option, by its name."""


REPORTING = {"list-primitives", "plugins", "doctor"}
"""Commands that report failed plug-ins themselves; all others are preceded by such a report."""


_ARGUMENTS = "aang_core.arguments"


def given_arguments(context: click.Context) -> list[str]:
    """All arguments of this call of ``aang``, to call it again."""
    arguments: list[str] = context.meta[_ARGUMENTS]
    return arguments


class AangGroup(click.Group):
    """Commands of plug-ins and of the core, imported when used; errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._commands(ctx).get(cmd_name)
        try:
            entry = entry or loaded_plugins(ctx).registry.commands.find(cmd_name)
        except UnknownNameError as error:
            ctx.fail(str(error))
        found = entry.load()
        if not isinstance(found, click.Command):
            raise entry.fault(f"{entry.target} is not a click command")
        if HELP_ALL not in found.params and any(isinstance(p, RareOption) for p in found.params):
            found.params.append(HELP_ALL)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        rows = [
            (name, entry.summary if _of_core(entry) else f"{entry.summary} ({entry.origin})")
            for name, entry in self._commands(ctx).items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = list(args)
        with _told_in_one_line(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _told_in_one_line(ctx):
            return super().invoke(ctx)

    def _commands(self, ctx: click.Context) -> dict[str, TargetEntry]:
        """All commands by their shortest names, the core's last; no plug-in can take those."""
        entries = sorted(loaded_plugins(ctx).registry.commands, key=_of_core)
        owners = Counter(entry.name for entry in entries)
        return {
            entry.name
            if owners[entry.name] == 1 or _of_core(entry)
            else entry.qualified_name: entry
            for entry in entries
        }


def _of_core(entry: TargetEntry) -> bool:
    return entry.origin.distribution == CORE


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of the system if the disk that standard output goes to is full; they name no file."""


_TIME_TO_SPEAK = 1.0
"""Seconds in which the first process of a training tells the user why it ends."""


def _tell(ctx: click.Context, error: AangError) -> None:
    if ctx.params.get("debug"):
        echo(traceback.format_exc(), err=True, nl=False)
        return
    echo(f"Error: {error}", err=True)
    for addition in getattr(error, "__notes__", ()):
        echo(addition, err=True)


@contextmanager
def _told_in_one_line(ctx: click.Context) -> Iterator[None]:
    """Turn an AangError or an interrupt into one line on standard error.

    The same for an error of the system that names a file or folder, since it concerns the user's
    disk.
    """
    try:
        yield
    except SharedError as error:
        if is_first() or ctx.params.get("debug"):
            _tell(ctx, error)
        else:
            # A launcher ends all processes when one has ended, and the first must have spoken.
            time.sleep(_TIME_TO_SPEAK)
        ctx.exit(2)
    except AangError as error:
        _tell(ctx, error)
        ctx.exit(2)
    except OSError as error:
        if ctx.params.get("debug") or not (error.filename or error.errno in _FULL):
            raise
        where = printable(str(error.filename)) if error.filename else "the output"
        echo(f"Error: {where}: {error.strerror} (aang --debug shows where)", err=True)
        ctx.exit(2)
    except KeyboardInterrupt:
        echo("interrupted", err=True)
        ctx.exit(128 + signal.SIGINT)
    except click.ClickException as error:
        # Click quotes arguments unescaped, and a shell's glob may have matched any file name.
        error.message = printable(error.message)  # type: ignore[misc]
        raise


def _tell_versions(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    """Print the core's version, then the plug-ins of each version, and exit."""
    if not given or context.resilient_parsing:
        return
    echo(f"aang {version(CORE)}")
    by_version: dict[str, list[str]] = {}
    for record in loaded_plugins(context).records:
        origin = record.origin
        if origin.distribution != CORE:
            status = "" if record.status == "ok" else f" ({record.status})"
            by_version.setdefault(origin.version, []).append(f"{origin.distribution}{status}")
    for number, names in by_version.items():
        echo(f"plug-ins {number}: {', '.join(dict.fromkeys(names))}")
    context.exit()


# The options are eager so that they apply to --help too, which lists the plug-ins' commands.
@click.group(
    cls=AangGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
@click.option(
    "--plugin",
    "local",
    metavar="FILE.py",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    is_eager=True,
    help="Load a plug-in from a file, besides the installed ones; can be repeated.",
)
@click.option(
    "--disable-plugin",
    "disable",
    metavar="NAME",
    multiple=True,
    is_eager=True,
    help="Disable a plug-in, by the name of its distribution or entry point; can be repeated.",
)
@click.option("--debug", is_flag=True, is_eager=True, help="Show tracebacks.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_tell_versions,
    help="Show the versions of AANG and of its plug-ins, and exit.",
)
@click.pass_context
def aang(
    context: click.Context, local: tuple[Path, ...], disable: tuple[str, ...], debug: bool
) -> None:
    """Train text classifiers together with auxiliary objectives."""
    # The options are read where the plug-ins are loaded. Commands get them by click.pass_obj.
    context.obj = loaded_plugins(context)
    if context.invoked_subcommand not in REPORTING:
        tell_failures(context)
