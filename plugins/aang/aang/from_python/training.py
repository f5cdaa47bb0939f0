"""Training from Python, as the command line trains."""

import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from aang.assembly.sources import Sources, prepare_sources
from aang.cli.progress import training_progress
from aang.cli.train import options_of_run
from aang.config import TrainConfig, check_plugin_option, schema_of
from aang.config.resolving import no_such_option
from aang.from_python.given_data import GivenData
from aang.runs.inputs import plugin_changes
from aang.runs.resume import copy_of, new_run_folder
from aang.runs.run import Run
from aang.runs.train import train_run
from aang.runs.training import During, join
from aang_core.cli.output import echo, note, note_once
from aang_core.errors import AangError, ConfigError
from aang_core.plugins import Plugins, load_plugins
from aang_core.tasks.processes import Processes
from aang_core.training.interruption import Interrupted, interruptible
from aang_core.turns import training_turn

_COMMAND = r"aang [a-z-]+[^.;,]*"
_OF_PRIMITIVE = r"--set (?P<of>[\w+-]+)\.(?P<option>\w+)(?:=(?P<value>[^\s:;,]+))?"
# "--steps 'x': …" is the option with its value.
_OPTION = r"--(?P<name>[a-z][a-z-]*)(?: (?=[^\s:]+: ))?"
_WRITTEN = re.compile(f"{_COMMAND}|{_OF_PRIMITIVE}|{_OPTION}")


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
        AangError: The data, the model or an option cannot be used.
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
    schema = schema_of(plugins.registry).model_fields
    names = [*schema, "resume", "accept_changes", "quiet"]
    for name in options:
        check_plugin_option(name, plugins.registry)
        if name not in schema:
            raise ConfigError(no_such_option(name, "aang train", names))
    for record in plugins.shadowed:
        note(record.notice)
    with errors_in_python(names), ExitStack() as stack:
        given = GivenData.of(options)
        file, folder = (None if path is None else Path(path) for path in (config, resume))
        resolved = options_of_run(file, folder, given.options, plugins.registry)
        _, processes = join(resolved.device)
        quiet = quiet or not processes.first
        once = note_once()

        def say(sentence: str) -> None:
            if not quiet:
                once(in_python(sentence, names))

        for sentence in () if folder is None else plugin_changes(folder, plugins)[1]:
            say(sentence)
        if not quiet:
            echo("reading data and loading the encoder ...", err=True)
        sources, out = _prepared(given, resolved, folder, plugins, processes, stack)
        try:
            with interruptible() as interruption, training_progress(quiet=quiet) as observe:
                run = train_run(
                    sources,
                    out,
                    plugins,
                    During(observe, say=say, interruption=interruption),
                    resume=folder is not None,
                    accept_changes=accept_changes,
                )
        except Interrupted as stopped:
            if (out / "config.yaml").is_file():
                stopped.add_note(f"To continue: train(resume={str(out)!r})")
            raise
    # Failures, such as a push that failed, are shown even if quiet.
    for sentence in run.failures if quiet else run.notes:
        (note if quiet else say)(sentence)
    return run


def _prepared(
    given: GivenData,
    config: TrainConfig,
    resume: Path | None,
    plugins: Plugins,
    processes: Processes,
    stack: ExitStack,
) -> tuple[Sources, Path]:
    """Read the data, and choose the folder for the run and for copies of data in memory."""
    # The name of the folder depends on the plan, which is settled only once the data is read.
    out = config.out or Path("runs")
    placed = given.placed(config, out)
    tables = given.tables(placed)
    in_memory = {out.absolute() / copy_of(name): table for name, (table, _) in tables.items()}
    with processes.all_or_none():
        sources = prepare_sources(placed, plugins.registry, in_memory)
    sources.report.include(given.report)
    out = resume or stack.enter_context(new_run_folder(sources.config, processes))
    if not tables:
        return sources, out
    plan = replace(sources.plan, config=given.placed(sources.config, out))
    copies = {
        copy_of(name): table.copy(wanted, array=name == "domain")
        for name, (table, wanted) in tables.items()
    }
    return replace(sources, plan=plan, copies=copies), out


def in_python(message: str, names: Collection[str] = TrainConfig.model_fields) -> str:
    """The message with keywords in place of options; commands for a terminal stay.

    Args:
        message: a message in the words of the command line.
        names: the names of all options.

    Examples:
        >>> in_python("--eval-every 0: should be greater. Name the column with --label.")
        'eval_every=0: should be greater. Name the column with label=.'
        >>> in_python("--set factored.n=0: too few; see aang train --help")
        "set={'factored': {'n': 0}}: too few; see aang train --help"
    """

    def keyword(match: re.Match[str]) -> str:
        if match["of"]:
            return f"set={{{match['of']!r}: {{{match['option']!r}: {match['value'] or '…'}}}}}"
        name = (match["name"] or "").replace("-", "_")
        return f"{name}=" if name in names else match[0]

    return _WRITTEN.sub(keyword, message)


@contextmanager
def errors_in_python(names: Collection[str]) -> Iterator[None]:
    """Reword the message of an error that AANG raises on purpose; ``names`` are all options."""
    try:
        yield
    except AangError as error:
        error.args = (in_python(str(error), names), *error.args[1:])
        raise
