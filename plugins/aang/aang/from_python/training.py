"""Training from Python, as the command line trains."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from aang.assembly.sources import Sources, prepare_sources
from aang.cli.train import RESUMABLE_WITH
from aang.config import check_plugin_option, read_config_file, resolve_training, schema_of
from aang.config.resolving import no_such_option
from aang.from_python.given_data import GivenData
from aang.from_python.progress import progress
from aang.from_python.wording import errors_in_python, in_python
from aang.runs.files import refuse_links
from aang.runs.inputs import plugin_changes
from aang.runs.resume import new_run_folder, unfinished
from aang.runs.run import Run
from aang.runs.train import train_run
from aang.runs.training import During, join
from aang_core.cli.output import note, note_once
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins, load_plugins
from aang_core.tasks.processes import Processes
from aang_core.training.interruption import Interrupted, interruptible
from aang_core.turns import training_turn


@training_turn()
def train(
    config: str | PathLike[str] | None = None,
    /,
    *,
    resume: str | PathLike[str] | None = None,
    accept_changes: bool = False,
    quiet: bool = False,
    **options: Any,
) -> Run:
    """Train as ``aang train`` does, from Python.

    Args:
        config: A configuration file.
        resume: The folder of an interrupted run to continue. It takes no other option but
            ``on_nan``, ``micro_batch_size``, ``save_memory`` and ``trust_remote_code``.
        accept_changes: Continue that run although its data, encoder, objectives or options have
            changed since it began.
        quiet: Show neither progress nor notes.
        **options: Those of ``aang train``, with underscores for dashes, and ``set`` as a mapping:
            ``train(space="td", set={"factored": {"n": 6}})``. ``train``, ``dev`` and ``test`` also
            take a pandas DataFrame, a ``datasets.Dataset``, a list of records, a dict of columns,
            or a pair ``(texts, labels)``. Given alone, ``train`` and ``dataset`` take a
            ``DatasetDict``, or a folder that ``save_to_disk`` has written. ``unlabelled`` and
            ``domain`` also take a table, or a list of texts. The run folder keeps a copy of data
            in memory.

    Returns:
        The run, finished.

    Raises:
        AangError: Something that was named cannot be used.
        KeyboardInterrupt: Training was interrupted, in a notebook by its stop button; a checkpoint
            has been written, and a note of the error says how to continue.

    Examples:
        >>> from aang import train
        >>> texts = 10 * ["It rains again.", "What a fine day!"]
        >>> labels = 10 * ["bad", "good"]
        >>> run = train(
        ...     train=(texts, labels), weighter="single-task", steps=2, out="mood", quiet=True
        ... )
        >>> run.result["steps"]
        2
    """
    plugins = load_plugins()
    names = schema_of(plugins.registry).model_fields
    for name in options:
        check_plugin_option(name, plugins.registry)
        if name not in names:
            known = [*names, "resume", "accept_changes", "quiet"]
            raise ConfigError(no_such_option(name, "aang train", known))
    for record in plugins.shadowed:
        note(record.notice)
    with errors_in_python(names), ExitStack() as stack:
        if resume is None:
            start = _first_start(config, options, plugins, stack)
        elif config is None and set(options) <= RESUMABLE_WITH:
            start = _resumption(Path(resume), options, plugins)
        else:
            raise ConfigError(
                "resume: an interrupted run continues with its own options; leave the others out"
            )
        quiet = quiet or not start.processes.first
        once = note_once()
        say: Callable[[str], None] = (
            (lambda sentence: None)
            if quiet
            else (lambda sentence: once(in_python(sentence, names)))
        )
        for sentence in start.notes:
            say(sentence)
        try:
            with interruptible() as interruption, progress(quiet=quiet) as observe:
                run = train_run(
                    start.sources,
                    start.out,
                    plugins,
                    During(observe, say=say, interruption=interruption),
                    resume=resume is not None,
                    accept_changes=accept_changes,
                )
        except Interrupted as stopped:
            if (start.out / "config.yaml").is_file():
                stopped.add_note(f"To continue: train(resume={str(start.out)!r})")
            raise
    # A push that failed, for instance, is more than a note.
    for sentence in run.failures if quiet else run.notes:
        (note if quiet else say)(sentence)
    return run


@dataclass(frozen=True)
class _Start:
    """What a training begins or continues with.

    Attributes:
        sources: its sources, with its options.
        out: the run folder.
        processes: the processes that share the training.
        notes: what has changed since the run was interrupted.
    """

    sources: Sources
    out: Path
    processes: Processes
    notes: Sequence[str] = ()


def _resumption(out: Path, options: Mapping[str, Any], plugins: Plugins) -> _Start:
    refuse_links(out)
    config = unfinished(out, plugins.registry, **{"trust_remote_code": False, **options})
    _, processes = join(config.device)
    with processes.all_or_none():
        sources = prepare_sources(config, plugins.registry)
    return _Start(sources, out, processes, notes=plugin_changes(out, plugins)[1])


def _first_start(
    config_file: str | PathLike[str] | None,
    options: Mapping[str, Any],
    plugins: Plugins,
    stack: ExitStack,
) -> _Start:
    given = GivenData.of(options)
    from_file = {} if config_file is None else read_config_file(Path(config_file))
    resolved = resolve_training(from_file, given.options, plugins.registry)
    _, processes = join(resolved.device)
    # The folder is named after what is trained, which only the data decides.
    config, data = given.placed(resolved, resolved.out or Path("runs"))
    with processes.all_or_none():
        sources = prepare_sources(config, plugins.registry, data.tables)
    sources.report.include(given.report)
    out = stack.enter_context(new_run_folder(sources.config, processes))
    if given.values:
        config, data = given.placed(sources.config, out)
        plan = replace(sources.plan, config=config)
        sources = replace(sources, plan=plan, copies=data.copies())
    return _Start(sources, out, processes)
