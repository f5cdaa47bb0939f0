"""Options that ``--help`` leaves out and ``--help-all`` shows."""

import click

from aang_core.cli.output import echo

_ALL = "aang_core.help_all"


class RareOption(click.Option):
    """An option that only ``--help-all`` shows, so that ``--help`` fits on a screen.

    A command that has such an option gets ``--help-all`` from ``aang``.

    >>> @click.command()
    ... @click.option("--seed", help="seed of every draw")
    ... @click.option("--adam-eps", cls=RareOption, help="ε of AdamW")
    ... def train(seed, adam_eps): ...
    >>> "--adam-eps" in train.get_help(click.Context(train))
    False
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if shows_all(ctx) else None


def shows_all(context: click.Context) -> bool:
    """Whether the help is being written for ``--help-all``."""
    return _ALL in context.meta


def _show_all(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        context.meta[_ALL] = True
        echo(context.get_help())
        context.exit()


HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options, and exit.",
)
