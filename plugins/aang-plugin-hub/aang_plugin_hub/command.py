"""``aang push``: a run's model on the Hugging Face hub."""

from pathlib import Path

import click

from aang_core.cli import echo


@click.command(short_help="Push a run's model to the Hugging Face hub.")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("name", metavar="NAME")
@click.option(
    "--private/--public",
    default=None,
    help="whether only you can see the model; default: as the run's --hub-private says",
)
@click.option("--update", is_flag=True, help="replace the files of a model that exists")
@click.option("--license", "licence", help="licence, such as mit; default: see below")
@click.option(
    "--language",
    "languages",
    multiple=True,
    help="language, such as en; default: see below; can be repeated",
)
def push(
    run: Path,
    name: str,
    private: bool | None,
    update: bool,
    licence: str | None,
    languages: tuple[str, ...],
) -> None:
    """Push the model of the run folder RUN, with its tokenizer and its card, in one commit.

    NAME is the model's name on the hub, MODEL or OWNER/MODEL. The token is that of hf auth login or
    in HF_TOKEN. Licence and language are by default those that the run was given, else the
    encoder's own.
    """
    # Imported here, because plug-ins are loaded for every command.
    from aang import Run

    from aang_plugin_hub.pushing import push as push_run

    echo(
        push_run(
            Run.open(run),
            name,
            private=private,
            update=update,
            licence=licence,
            languages=languages,
        )
    )
