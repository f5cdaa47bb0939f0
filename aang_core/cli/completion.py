"""What a shell offers for options whose values plug-ins have registered."""

from collections.abc import Callable, Iterable, Mapping

import click
from click.shell_completion import CompletionItem

from aang_core.cli.loaded import loaded_plugins
from aang_core.plugins.registry import Registry

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _weighters(registry: Registry) -> Iterable[tuple[str, str]]:
    return ((entry.name, entry.summary) for entry in registry.primitives("weighter"))


def _spaces(registry: Registry) -> Iterable[tuple[str, str]]:
    return ((entry.name, entry.summary) for entry in (*registry.spaces, *registry.objectives))


def _recipes(registry: Registry) -> Iterable[tuple[str, str]]:
    return ((entry.name, entry.summary) for entry in registry.recipes)


def _completing(named: Callable[[Registry], Iterable[tuple[str, str]]], *, files: bool) -> Complete:
    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        known = dict(named(loaded_plugins(context).registry))
        items = [
            CompletionItem(name, help=summary)
            for name, summary in known.items()
            if name.startswith(incomplete)
        ]
        # Only where no name fits, because shells show one kind or the other.
        return items or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _folders(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def _files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


COMPLETIONS: Mapping[str, Complete] = {
    "weighter": _completing(_weighters, files=False),
    "space": _completing(_spaces, files=True),
    "recipe": _completing(_recipes, files=False),
    "model": _folders,
    **dict.fromkeys(("domain", "out_of_domain", "unlabelled"), _files),
}
"""What completes the value of an option, by its name."""
