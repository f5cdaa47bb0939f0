"""What a shell offers for options whose values plug-ins have registered, and for paths."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import click
from click.shell_completion import CompletionItem

from aang_core.cli.loaded import loaded_plugins
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import Entry, Registry

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _path(
    kind: str, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type=kind)]


def _registered(
    entries: Callable[[Registry], Iterable[Primitive | Entry]],
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
