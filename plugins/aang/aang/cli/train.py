"""``aang train``: train a classifier with auxiliary objectives."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang.assembly.text_options import check_names, check_paths
from aang.cli.result import print_result
from aang.cli.schema_options import options_of
from aang.config import TrainConfig, read_config_file, resolve_training
from aang.config.schema import BALANCED
from aang.config.settings import parse_settings
from aang.runs.run_files import refuse_links
from aang.runs.unfinished import check_unfinished, resume_command, unfinished
from aang_core.cli.loaded import output_of_plugins
from aang_core.cli.output import echo, note, note_once
from aang_core.errors import AangError, ConfigError
from aang_core.plugins import Plugins
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.launched import is_first, launched_processes

if TYPE_CHECKING:
    from aang.runs.run import Run
    from aang.runs.summary import Summary
    from aang_core.tasks.processes import Processes

Say = Callable[[str], None]
"""Prints a note."""

RESUMABLE_WITH = {"on_nan", "trust_remote_code", "micro_batch_size", "save_memory"}
"""Options that may be given with --resume: the training so far does not depend on them, a run that
memory was too small for needs less of it, and a folder cannot declare itself trustworthy."""


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
    help="continue the interrupted run in this folder; takes no other option but --on-nan, "
    "--micro-batch-size, --save-memory, --trust-remote-code and --accept-changes",
)
@click.option(
    "--accept-changes",
    is_flag=True,
    help="with --resume: go on although data, encoder, objectives or options have changed since "
    "the run began",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="read the data, load the encoder, measure a few steps, print what the run would do, and "
    "stop; nothing is written",
)
@click.option("--quiet", is_flag=True, help="print only the result: no progress, no notes")
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON")
@click.pass_obj
def train(
    plugins: Plugins,
    /,
    config_file: Path | None,
    resume: Path | None,
    accept_changes: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a classifier together with auxiliary objectives.

    Without data, train on the built-in demo: which package of the standard library does a paragraph
    of documentation belong to? CONFIG.yaml may contain any option; options on the command line take
    precedence.
    """
    given = given_options(options)
    if resume is not None and dry_run:
        raise ConfigError("--dry-run: an interrupted run has begun already; leave --resume out")
    if resume is None and accept_changes:
        raise ConfigError("--accept-changes: goes with --resume RUN, the run that has changed")
    config: TrainConfig | None = None
    failure: AangError | None = None
    try:
        # All that can be checked without torch and transformers, which take seconds to import.
        if resume is not None:
            _check_resumable(resume, given, config_file)
        else:
            config = _checked(config_file, given, plugins)
    except AangError as error:
        if launched_processes() == 1:
            raise
        failure = error  # the other processes wait for this one, and have to be told
    quiet = quiet or not is_first()
    if not quiet:
        echo("reading data and loading the encoder ...", err=True)

    from aang.cli.before import print_summary
    from aang.runs.training import join

    say = _ignore if quiet else note_once()
    if resume is not None and failure is None:
        try:
            config = _resumed(resume, given, plugins, say)
        except AangError as error:
            if launched_processes() == 1:
                raise
            failure = error
    device = given.get("device", "auto") if config is None else config.device
    _, processes = join(device)
    with processes.all_or_none():
        if failure is not None:
            raise failure
    assert config is not None
    if dry_run:
        with output_of_plugins():
            planned = _planned(config, plugins, processes, say)
        if processes.first:
            print_summary(planned, as_json=as_json)
        return
    with output_of_plugins():
        run = _trained(
            config, resume, plugins, processes, say, accept_changes=accept_changes, quiet=quiet
        )
    if not processes.first:
        return
    # A push that failed, for instance, is more than a note.
    for line in run.failures if quiet else run.notes:
        (note if quiet else say)(line)
    if as_json:
        echo(json.dumps({**run.result, "run": str(run.folder)}, indent=2))
    else:
        print_result(run)


def _checked(config_file: Path | None, given: Mapping[str, Any], plugins: Plugins) -> TrainConfig:
    """The options of a new run, with names and paths that exist.

    Raises:
        AangError: an option cannot be used.
    """
    from_file = read_config_file(config_file) if config_file else {}
    config = resolve_training(from_file, given, plugins.registry)
    if config.out is not None:
        RunFolder.check_free(config.out)
    check_paths(config)
    check_names(config, plugins.registry)
    return config


def _check_resumable(folder: Path, given: Mapping[str, Any], config_file: Path | None) -> None:
    """Refuse a folder that is not that of an interrupted run, and options that it has already.

    Raises:
        AangError: it cannot be resumed in this way.
    """
    if config_file is not None or set(given) - RESUMABLE_WITH:
        raise ConfigError(
            "--resume: an interrupted run continues with its own options; leave the others out"
        )
    refuse_links(folder)
    check_unfinished(folder)


def _resumed(folder: Path, given: Mapping[str, Any], plugins: Plugins, say: Say) -> TrainConfig:
    from aang.runs.recorded_plugins import recorded_differences

    config = unfinished(folder, **{"trust_remote_code": False, **given})
    for difference in recorded_differences(folder, plugins):
        say(difference)
    return config


def _planned(config: TrainConfig, plugins: Plugins, processes: "Processes", say: Say) -> "Summary":
    from aang.assembly.sources import prepare_sources
    from aang.runs import before

    with processes.all_or_none():
        sources = prepare_sources(config, plugins.registry)
    return before.dry_run(sources.config, sources, say=say)


def _trained(
    config: TrainConfig,
    resume: Path | None,
    plugins: Plugins,
    processes: "Processes",
    say: Say,
    *,
    accept_changes: bool,
    quiet: bool,
) -> "Run":
    """Train a new run or resume one; exit if a signal stops it."""
    from aang.assembly.sources import prepare_sources
    from aang.cli.before import announce
    from aang.cli.progress import training_progress
    from aang.runs.new_folder import new_run_folder
    from aang.runs.train_run import train_run
    from aang_core.training.interruption import Interrupted, interruptible

    out: Path | None = None
    try:
        with (
            interruptible() as interruption,
            training_progress(quiet=quiet) as observe,
            ExitStack() as stack,
        ):
            with processes.all_or_none():
                sources = prepare_sources(config, plugins.registry)
            out = resume or stack.enter_context(new_run_folder(sources.config, processes))
            return train_run(
                sources.config,
                sources,
                out=out,
                plugins=plugins,
                observe=observe,
                resume=resume is not None,
                accept_changes=accept_changes,
                interruption=interruption,
                announce=_ignore if quiet else announce,
                say=say,
            )
    except Interrupted as stopped:
        if processes.first:
            echo(str(stopped), err=True)
            if out is not None and (out / "config.yaml").is_file():
                echo(f"to continue:\n    {resume_command(out)}", err=True)
        raise SystemExit(stopped.status) from None


def _ignore(said: object) -> None:
    """With ``--quiet``, nothing but the result is printed."""


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
        arguments: What would follow ``aang train``. Options that say what the command prints are
            ignored.

    Raises:
        ConfigError: An option that is made of several parts has another form, or an argument says
            something else than what a new run is trained with: a configuration file, ``--resume``,
            ``--accept-changes`` or ``--dry-run``.
    """
    with train.make_context("train", list(arguments)) as context:
        params = context.params
        if (file := params["config_file"]) is not None:
            raise ConfigError(
                f"{file}: is no option of aang train, and configuration files are not read here; "
                "give their options instead"
            )
        for name in ("resume", "accept_changes", "dry_run"):
            if params[name]:
                raise ConfigError(
                    f"--{name.replace('_', '-')}: is for aang train alone; give only options that "
                    "say what is trained"
                )
        named = {name: params[name] for name in TrainConfig.model_fields}
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
