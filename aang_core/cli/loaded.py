"""The plug-ins that the global options select, loaded once, and what a shell offers of them."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from aang_core.cli.output import echo
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.primitive import Entry
from aang_core.plugins.registry import Registry

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

    Plug-ins that another one keeps out are reported, too: somebody may want them.
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
    # Only where no name fits, because shells show one kind or the other.
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
"""What completes the value of an option, by its name."""
