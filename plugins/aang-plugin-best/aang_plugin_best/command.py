"""``aang best``: find the best way to a classifier, and train it on all labels."""

from pathlib import Path
from typing import Any

import click
from aang.cli.schema_options import given_options, options_of
from aang.config import TrainConfig
from aang.config.schema import DataOptions
from aang_plugin_compare.launcher import chosen_launcher, launcher_options

from aang_core import Plugins
from aang_core.cli import echo, note

OWN = ("minutes", "group", "keep_dev", "only", "deploy", "answer_at", "search_objectives")
"""Options that are the search's own."""

_LEFT_OUT = (
    *("test_score", "task_type", "label_names", "dev_fraction", "train_rows", "aux_task", "target"),
    "dev",
)


class _SearchCommand(click.Command):
    """A command that says where options of ``aang train`` belong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.lstrip("-").replace("-", "_") in TrainConfig.model_fields:
                own = f"aang best … -- {error.option_name} …"
                error.message += f" Options of aang train follow after --: {own}"  # type: ignore[misc]
            raise


@click.command(
    cls=_SearchCommand,
    short_help="Find the best way to a classifier, and train it on all labels.",
)
@options_of(DataOptions, skip=_LEFT_OUT)
@click.option(
    "--dev",
    type=click.Path(path_type=Path),
    help="further labelled data, which joins --train, or is kept out with --keep-dev",
)
@click.option(
    "--model", help="folder or hub name of the encoder; default: the demo's small encoder"
)
@click.option("--group", metavar="COLUMN", help="rows with equal values there stay in one fold")
@click.option("--keep-dev", is_flag=True, help="keep --dev out, and score it at the end")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="how long it may take, training on all rows included; default: 60, without data 5",
)
@click.option(
    "--candidate",
    "only",
    multiple=True,
    help="what to try, such as tf-idf, plain or contrast; default: everything; can be repeated",
)
@click.option(
    "--search-objectives",
    metavar="[SPACE]",
    is_flag=False,
    flag_value="td+c",
    help="first search the objectives of a space (default: td+c) for a set that becomes a "
    "candidate, in at most three times the time of contrast",
)
@click.option(
    "--deploy",
    type=click.Choice(["one", "ensemble"]),
    default="one",
    show_default=True,
    help="what is trained on all rows: the best single model, or several together",
)
@click.option(
    "--answer-at",
    type=float,
    metavar="ACCURACY",
    help="leave uncertain predictions empty, so that the others reach this accuracy",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("best"),
    show_default=True,
    help="folder of the search",
)
@click.option("--jobs", type=click.IntRange(min=1), help="runs at once; default: 1")
@launcher_options
@click.option("--quiet", is_flag=True, help="print only the verdict")
@click.argument("arguments", metavar="-- [TRAIN OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def best(
    plugins: Plugins, /, out: Path, arguments: tuple[str, ...], quiet: bool, **given: Any
) -> None:
    """Try several ways to a classifier, and train the best one on all labelled rows.

    Every row is predicted once by a model that has not seen it. If it is interrupted, run the same
    command again to continue. Options of aang train for all trainings follow after --, such as
    -- --steps 300 --max-length 256.
    """
    from aang.cli import training_options
    from aang_plugin_compare.runner import Runs, resumable

    from aang_core import ReadReport
    from aang_plugin_best.search import Asked, Search, find_best
    from aang_plugin_best.verdict import words

    own = {n: given.pop(n) for n in OWN}
    launching = {n: given.pop(n) for n in ("engine", "address", "cpus_per_run", "gpus_per_run")}
    launching |= {"jobs": given.pop("jobs")}
    trust = given.pop("trust_remote_code")
    options = {**training_options(arguments), **given_options(given)}
    report = ReadReport()
    say = (lambda line: None) if quiet else (lambda line: echo(line, err=True))
    search = Search.prepared(Asked(options, **own), plugins.registry, report)
    for line in () if quiet else report.lines():
        note(line)
    with resumable(), chosen_launcher(out, launching) as launcher:
        runs = Runs.asked(out, launcher, plugins.registry, trust)
        verdict = find_best(search, runs, plugins.registry, say)
    for line in words(verdict):
        echo(line)
    echo(f"model: {out / 'model'}")
