"""``aang train``: train a classifier with auxiliary objectives."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aang.assembly.text_options import check_names, check_paths
from aang.cli.result import print_result, print_summary
from aang.cli.schema_options import TrainingCommand, given_options, options_of
from aang.config import TrainConfig, read_config_file, resolve_training, schema_of
from aang.runs.files import refuse_links
from aang.runs.resume import check_free, new_run_folder, resume_command, unfinished
from aang_core.cli.app import loaded_plugins, output_of_plugins
from aang_core.cli.output import echo, note, note_once
from aang_core.cli.rare_options import RareOption, shows_all
from aang_core.errors import AangError, ConfigError
from aang_core.plugins import Plugins
from aang_core.plugins.registry import Registry
from aang_core.tasks.processes import is_first, launched_processes

if TYPE_CHECKING:
    from aang.runs.run import Run
    from aang_core.tasks.processes import Processes

Say = Callable[[str], None]
"""Prints a note."""

RESUMABLE_WITH = {"on_nan", "trust_remote_code", "micro_batch_size", "save_memory"}
"""Options that may be given with --resume: the training so far does not depend on them, a run that
ran out of memory has to need less, and a folder cannot declare itself trustworthy."""


class _ListsRecipes(TrainingCommand):
    """A command whose help ends with the recipes that the plug-ins have registered."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(r.name, r.summary) for r in loaded_plugins(ctx).registry.recipes]
        if rows and shows_all(ctx):
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
    help="continue the interrupted run in this folder, with its own options",
)
@click.option(
    "--accept-changes",
    cls=RareOption,
    is_flag=True,
    help="with --resume: go on although data, encoder or options have changed since the run began",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="print what the run would do and how long it would take, and stop",
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
    quiet = quiet or not is_first()
    say = _ignore if quiet else note_once()
    config: TrainConfig | None = None
    failure: AangError | None = None
    try:
        # Check all that needs no torch and transformers, which take seconds to import.
        config = options_of_run(config_file, resume, given, plugins.registry)
        if resume is None:
            if config.out is not None:
                check_free(config.out)
            check_paths(config)
            check_names(config, plugins.registry)
    except AangError as error:
        if launched_processes() == 1:
            raise
        failure = error  # the other processes wait for this one and must learn of it
    if not quiet:
        echo("reading data and loading the encoder ...", err=True)

    from aang.assembly.sources import prepare_sources
    from aang.runs import before
    from aang.runs.inputs import plugin_changes
    from aang.runs.training import join

    _, processes = join(given.get("device", "auto") if config is None else config.device)
    with processes.all_or_none():
        if failure is not None:
            raise failure
    assert config is not None
    for difference in () if resume is None else plugin_changes(resume, plugins)[1]:
        say(difference)
    with output_of_plugins():
        if not dry_run:
            run = _trained(
                config, resume, plugins, processes, say, accept_changes=accept_changes, quiet=quiet
            )
        else:
            with processes.all_or_none():
                sources = prepare_sources(config, plugins.registry)
            planned = before.dry_run(sources, say=say)
    if not processes.first:
        return
    if dry_run:
        print_summary(planned, as_json=as_json)
        return
    # Failures, such as a push that failed, are shown even if quiet.
    for line in run.failures if quiet else run.notes:
        (note if quiet else say)(line)
    if as_json:
        echo(json.dumps({**run.result, "run": str(run.folder)}, indent=2))
    else:
        print_result(run)


def options_of_run(
    config_file: Path | None, resume: Path | None, given: Mapping[str, Any], registry: Registry
) -> TrainConfig:
    """The options of a new run, or of the interrupted one in the folder ``resume``.

    Raises:
        AangError: an option cannot be used or not with ``resume``, or the run cannot be resumed.
    """
    if resume is None:
        from_file = read_config_file(config_file) if config_file else {}
        return resolve_training(from_file, given, registry)
    if config_file is not None or set(given) - RESUMABLE_WITH:
        raise ConfigError(
            "--resume: an interrupted run continues with its own options; leave out all but "
            "--accept-changes, --micro-batch-size, --on-nan, --save-memory and --trust-remote-code"
        )
    refuse_links(resume)
    return unfinished(resume, registry, **{"trust_remote_code": False, **given})


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
    from aang.cli.progress import training_progress
    from aang.runs.train import train_run
    from aang.runs.training import During
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
            during = During(
                observe, _ignore if quiet else partial(print_summary, err=True), say, interruption
            )
            return train_run(
                sources,
                out,
                plugins,
                during,
                resume=resume is not None,
                accept_changes=accept_changes,
            )
    except Interrupted as stopped:
        if processes.first:
            echo(str(stopped), err=True)
            if out is not None and (out / "config.yaml").is_file():
                echo(f"to continue:\n    {resume_command(out)}", err=True)
        raise SystemExit(stopped.status) from None


def _ignore(said: object) -> None:
    """With ``--quiet``, nothing but the result is printed."""


def training_options(arguments: Sequence[str]) -> dict[str, Any]:
    """The options of a training in a command line, as a configuration file would hold them.

    Args:
        arguments: what would follow ``aang train``. Options that say what the command prints are
            ignored.

    Raises:
        ConfigError: an option that is made of several parts is malformed, or an argument is not an
            option of a new run: a configuration file, ``--resume``, ``--accept-changes`` or
            ``--dry-run``.
    """
    outer = click.get_current_context(silent=True)
    with train.make_context("train", list(arguments), parent=outer) as context:
        params = context.params
        for name in ("config_file", "resume", "accept_changes", "dry_run"):
            if params[name]:
                file = params["config_file"]
                raise ConfigError(
                    f"{file or '--' + name.replace('_', '-')}: is for aang train alone; give only "
                    "options that say what is trained"
                )
        schema = schema_of(loaded_plugins(context).registry)
        return given_options({name: params[name] for name in schema.model_fields})
