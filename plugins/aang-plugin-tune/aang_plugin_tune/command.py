"""``aang tune``: search settings on dev, and refit the best."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from aang_plugin_compare.launcher import chosen_launcher, file_in, options_of_many_runs

from aang_core import ConfigError, Plugins
from aang_core.cli import echo
from aang_core.storage import locked

if TYPE_CHECKING:
    from aang_plugin_compare.runner import Ended, Runs

    from aang_plugin_tune.search import Search
    from aang_plugin_tune.study import Study, Tried

DEFAULT_RUNS = 20


@click.command(short_help="Search settings on dev, and refit the best; resumable.")
@click.option(
    "--search",
    "searched",
    multiple=True,
    metavar="NAME=…",
    help="option to search: values such as lr=1e-5,1e-4 or a range such as lr=1e-5..1e-3:log; can "
    "be repeated",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="a recipe or weighter to choose from; can be repeated",
)
@click.option("--grid", help="grid whose options are searched, by the name a plug-in gives it")
@click.option(
    "--runs",
    type=click.IntRange(min=1, max=10_000),
    help=f"maximum number of runs; without --minutes, {DEFAULT_RUNS} or as many as there are "
    "settings",
)
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), help="maximum minutes of the search"
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="runs at once"
)
@click.option(
    "--sampler",
    type=click.Choice(["grid", "tpe", "random"]),
    help="how settings are proposed: all of them in a random order, by Optuna's TPE, or at random; "
    "grid if only values are searched, else tpe",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="seed of the proposals; the seed of the runs goes after --",
)
@click.option(
    "--prune/--no-prune",
    default=True,
    show_default=True,
    help="stop runs whose dev score is below the median of the others at the same step",
)
@click.option(
    "--prune-after",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="finished runs from which on others are pruned",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=1000),
    default=1,
    show_default=True,
    help="seeds that the best setting is refitted with",
)
@click.option(
    "--refit/--no-refit",
    default=True,
    show_default=True,
    help="train the best setting again, with test data, which ends the search",
)
@options_of_many_runs("SEARCH.yaml", "search", ["text", "markdown", "json"])
@click.pass_obj
def tune(
    plugins: Plugins,
    /,
    searched: tuple[str, ...],
    methods: tuple[str, ...],
    grid: str | None,
    arguments: tuple[str, ...],
    out: Path | None,
    kind: str,
    **options: Any,
) -> None:
    """Search options, recipes and grids for the setting with the best dev score.

    Runs of the search have no test data. The best setting is trained again with it at the end, and
    its test score is reported. If it is interrupted, run the same command again to continue.
    """
    # Imported here, so that --help need not wait for it.
    from aang_plugin_compare.run_folders import make_root
    from aang_plugin_compare.runner import Runs

    from aang_plugin_tune.outcome import read_outcome, text_of, write_outcome
    from aang_plugin_tune.plan import plan
    from aang_plugin_tune.study import Study, claim_folder

    registry = plugins.registry
    file = file_in(arguments)
    search = plan(
        registry,
        file=file,
        searched=searched,
        methods=methods,
        grid=grid,
        arguments=arguments if file is None else arguments[1:],
    )
    root = out or (Path("search") if file is None else file.with_suffix(""))
    finite = search.listed() is not None
    if options["sampler"] == "grid" and not finite:
        raise ConfigError("--sampler grid: a range has no list of values; give values, or take tpe")
    how = {
        "sampler": options["sampler"] or ("grid" if finite else "tpe"),
        "seed": options["seed"],
        "prune_after": options["prune_after"] if options["prune"] else None,
    }
    with chosen_launcher(root, options) as launcher:
        make_root(root)
        with locked(root):
            claim_folder(root, search, **how)
            study = Study(root, search, **how)
            if not options["table_only"]:
                runs = Runs.asked(root, launcher, registry, options["trust_remote_code"])
                _run(search, runs, study, options)
            outcome = read_outcome(root, search, study)
            write_outcome(root, outcome)
    echo(text_of(outcome, kind), nl=False)


def _run(search: "Search", runs: "Runs", study: "Study", options: Mapping[str, Any]) -> None:
    """Search until the budget is spent, and refit the best; exit on an interrupt."""
    from aang.runs.schema import DataStatistics
    from aang_plugin_compare.cells import Job
    from aang_plugin_compare.runner import resumable

    from aang_plugin_tune.outcome import read_outcome, write_outcome
    from aang_plugin_tune.refit import (
        Chosen,
        best_or_why_none,
        read_chosen,
        refit,
        refuse_longer,
        write_chosen,
    )
    from aang_plugin_tune.searcher import Searcher
    from aang_plugin_tune.study import trial_folder

    most, minutes, root = options["runs"], options["minutes"], runs.root
    if most is None and minutes is None:
        most = DEFAULT_RUNS

    def tell(trial: "Tried") -> None:
        if not options["quiet"] or trial.error:
            echo(f"{trial_folder(trial.number).name}: {_ended(trial)}", err=True)

    def tell_refit(ended: "Ended") -> None:
        if ended.error or (ended.state != "finished" and not options["quiet"]):
            echo(f"{ended.name}: {ended.error or 'done'}", err=True)

    with resumable():
        runs.launcher.ready()
        for trial in study.trials:
            folder = trial_folder(trial.number)
            if trial.score is not None and (root / folder / DataStatistics.file).is_file():
                runs.refuse_other_data(Job(folder, search.config(trial.setting)))
        chosen = read_chosen(root)
        if chosen is None:
            Searcher(runs, search, study, tell).run(
                runs=math.inf if most is None else most,
                seconds=math.inf if minutes is None else 60 * minutes,
            )
            best = best_or_why_none(study.trials, root)
            if not options["refit"]:
                return
            chosen = Chosen(best.number, dict(best.setting), most, minutes)
            write_outcome(root, read_outcome(root, search, study))
            write_chosen(root, chosen)
        else:
            refuse_longer(chosen, options["runs"], minutes)
        if options["refit"]:
            refit(runs, search, chosen, options["seeds"], tell_refit)


def _ended(trial: "Tried") -> str:
    from aang_plugin_tune.search import shown

    setting = shown(trial.setting)
    if trial.error:
        return f"{setting}: {trial.error}"
    score = "" if trial.score is None else f" {100 * trial.score:.2f}"
    if trial.state == "pruned":
        return f"{setting}: pruned at step {trial.step}, dev{score}"
    return f"{setting}: dev{score}"
