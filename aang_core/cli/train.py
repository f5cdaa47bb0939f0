"""``aang train``: train a classifier with auxiliary objectives."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang_core.cli.output import echo, note, note_once
from aang_core.cli.schema_options import options_of
from aang_core.cli.tables import print_table
from aang_core.config import TrainConfig, read_config_file, resolve_training
from aang_core.config.schema import BALANCED
from aang_core.config.settings import parse_settings
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang_core.runs.run import Run

RESUMABLE_WITH = {"on_nan", "trust_remote_code"}
"""Options that may be given with --resume: the training so far does not depend on them, and a
folder cannot declare itself trustworthy."""


class _ListsRecipes(click.Command):
    """A command whose help ends with the recipes that the plug-ins have registered."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plugins = ctx.find_object(Plugins)
        rows = [] if plugins is None else [(r.name, r.summary) for r in plugins.registry.recipes]
        if rows:
            with formatter.section("Recipes"):
                formatter.write_dl(rows)


@click.command(cls=_ListsRecipes, short_help="Train a classifier with auxiliary objectives.")
@click.argument(
    "config_file", metavar="[CONFIG.yaml]", required=False, type=click.Path(path_type=Path)
)
@options_of(TrainConfig)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="continue the interrupted run in this folder; takes no other option but --on-nan and "
    "--trust-remote-code",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="read the data, load the encoder, measure a few steps, print what the run would do, and "
    "stop; nothing is written",
)
@click.option("--quiet", is_flag=True, help="no progress; print the result alone")
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON")
@click.pass_obj
def train(
    plugins: Plugins,
    /,
    config_file: Path | None,
    resume: Path | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a classifier with auxiliary objectives, and learn which of them help.

    Without data, train on the built-in demo: which package of the standard library does a paragraph
    of documentation belong to? CONFIG.yaml may contain any option; options on the command line take
    precedence.
    """
    from aang_core.assembly.sources import prepare_sources
    from aang_core.cli.before import announce, print_summary
    from aang_core.cli.progress import training_progress
    from aang_core.runs import before
    from aang_core.runs.recorded_plugins import recorded_differences
    from aang_core.runs.resuming import resume_command, unfinished
    from aang_core.runs.run_files import refuse_links
    from aang_core.runs.train_run import free_run_folder, train_run
    from aang_core.runs.training import choose_device
    from aang_core.tasks.processes import processes_of_environment
    from aang_core.training.interruption import Interrupted, interruptible

    given = given_options(options)
    if resume is not None:
        if dry_run:
            raise ConfigError("--dry-run: an interrupted run has begun already; leave --resume out")
        if config_file or set(given) - RESUMABLE_WITH:
            raise ConfigError(
                "--resume: an interrupted run continues with its own options; leave the others out"
            )
        refuse_links(resume)
        config, out = unfinished(resume, **{"trust_remote_code": False, **given}), resume
        for difference in recorded_differences(resume, plugins):
            note(difference)
    else:
        config = resolve_training(
            read_config_file(config_file) if config_file else {}, given, plugins.registry
        )
        out = free_run_folder(config)
    processes = processes_of_environment(choose_device(config.device))
    processes.wait()  # until all of them have chosen the same free folder
    quiet = quiet or not processes.first
    say = note_once()
    before_training = _ignore if quiet else say
    if dry_run:
        sources = prepare_sources(config, plugins.registry)
        planned = before.dry_run(sources.config, sources, say=before_training)
        if processes.first:
            print_summary(planned, as_json=as_json)
        return
    try:
        with interruptible() as interruption, training_progress(quiet=quiet) as observe:
            sources = prepare_sources(config, plugins.registry)
            if resume is None and sources.config.recipe != config.recipe:
                out = free_run_folder(sources.config)
                processes.wait()
            run = train_run(
                sources.config,
                sources,
                out=out,
                plugins=plugins,
                observe=observe,
                resume=resume is not None,
                interruption=interruption,
                announce=_ignore if quiet else announce,
                say=before_training,
            )
    except Interrupted as stopped:
        if processes.first:
            echo(str(stopped), err=True)
            if (out / "config.yaml").is_file():
                echo(f"to continue:\n    {resume_command(out)}", err=True)
        raise SystemExit(stopped.status) from None
    if not processes.first:
        return
    for line in run.notes:
        say(line)
    if as_json:
        echo(json.dumps({**run.result, "run": str(run.folder)}, indent=2))
    else:
        _print_result(run)


def _ignore(said: object) -> None:
    """With ``--quiet``, nothing is printed before the end."""


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options given on the command line, in the form of a configuration file.

    Raises:
        ConfigError: an option with several parts is malformed.
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if "set" in given:
        given["set"] = parse_settings(given["set"])
    if "aux_task" in given:
        given["aux_task"] = parse_files(given["aux_task"])
    if "class_weights" in given:
        given["class_weights"] = parse_class_weights(given["class_weights"])
    return given


def training_options(arguments: Sequence[str]) -> dict[str, Any]:
    """The options of a training in a command line, as a configuration file would hold them.

    Args:
        arguments: What would follow ``aang train``. A configuration file among them, and options
            that say how the command runs and not what is trained, are ignored.

    Raises:
        ConfigError: An option that is made of several parts has another form.
    """
    with train.make_context("train", list(arguments)) as context:
        named = {name: context.params[name] for name in TrainConfig.model_fields}
    return given_options(named)


def parse_files(tasks: Sequence[str]) -> dict[str, str]:
    """Files by name, from ``NAME=FILE`` each.

    Raises:
        ConfigError: one is malformed, or a name is given twice.
    """
    files: dict[str, str] = {}
    for task in tasks:
        name, equals, file = task.partition("=")
        if not (equals and name and file):
            raise ConfigError(f"--aux-task {task}: give NAME=FILE, such as wnli=wnli/train.tsv")
        if name in files:
            raise ConfigError(f"--aux-task {task}: the name {name} is given twice")
        files[name] = file
    return files


def parse_class_weights(given: Sequence[str]) -> dict[str, float] | str:
    """Weights by class, from ``NAME=WEIGHT`` each, or the single word ``balanced``.

    Raises:
        ConfigError: one is malformed, or a class is given twice.
    """
    if list(given) == [BALANCED]:
        return BALANCED
    weights: dict[str, float] = {}
    for entry in given:
        name, equals, weight = entry.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = 0.0
        if not (equals and name and number > 0 and math.isfinite(number)):
            raise ConfigError(
                f"--class-weights {entry}: give {BALANCED}, or NAME=WEIGHT with a number above "
                "zero, such as negative=2.5"
            )
        if name in weights:
            raise ConfigError(f"--class-weights {entry}: the class {name} is given twice")
        weights[name] = number
    return weights


def _print_result(run: "Run") -> None:
    outcome, recipe = run.outcome, run.options.get("recipe")
    chosen = outcome.metric
    lines = [
        (f"this run ({recipe or outcome.weighter})", chosen.dev, chosen.test),
        (outcome.baseline, outcome.majority.dev, outcome.majority.test),
    ]
    if reference := outcome.fine_tuning:
        name = f"plain fine-tuning, mean of {reference.seeds} seeds"
        lines.insert(1, (name, reference.dev, reference.test))
    if outcome.best_step == 0:
        echo("No step of training beat the untrained model on dev, so the untrained one is kept:")
    else:
        echo(f"The best model is from step {outcome.best_step}:")
    if tuned := outcome.final_fine_tuning:
        echo(
            "Fine-tuned on the end task alone, "
            f"from {tuned.before.dev:.4f} to {tuned.after.dev:.4f} on dev:"
            if tuned.kept
            else "Fine-tuning it on the end task alone did not improve dev and was undone:"
        )
    print_table(
        [chosen.name, "dev", "test"],
        [[name, _score(dev), _score(test)] for name, dev, test in lines],
    )
    model = str(run.folder / outcome.model)
    echo(f"Everything about this run is in {run.folder}. Its model is an ordinary transformers")
    echo("folder, which needs no AANG:")
    echo("    from transformers import pipeline")
    echo(f"    classify = pipeline({outcome.pipeline!r}, model={model!r})")


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
