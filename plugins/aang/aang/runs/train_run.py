"""A whole run, from a resolved configuration to a complete run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import torch

from aang.assembly.assembly import assemble
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.runs import drawn_rows, inputs, recorded_plugins, resuming
from aang.runs.after_run import call_after_run, check_push
from aang.runs.before import check, prepare
from aang.runs.encoder_training import METRIC
from aang.runs.linear_controls import controls_of
from aang.runs.log_lines import DevScores, Round
from aang.runs.main_training import During, Observe, reusable, train_and_evaluate, unobserved
from aang.runs.memory_needed import lowering_told
from aang.runs.model_card import card_of
from aang.runs.model_files import record_model
from aang.runs.pretraining import ReadyStage, pretrain
from aang.runs.run import Run
from aang.runs.run_files import write_part
from aang.runs.same_inputs import refuse_other_inputs
from aang.runs.schema import DataStatistics, StageResult
from aang.runs.summary import Summary
from aang_core.plugins import Plugins
from aang_core.storage.log_digests import log_digests
from aang_core.storage.run_folder import RunFolder
from aang_core.training.interruption import Interruption


def train_run(
    config: TrainConfig,
    sources: Sources,
    *,
    out: Path,
    plugins: Plugins,
    observe: Observe = unobserved,
    resume: bool = False,
    interruption: Interruption | None = None,
    announce: Callable[[Summary], None] = lambda summary: None,
    say: Callable[[str], None] = lambda sentence: None,
    copies: Mapping[str, str] = MappingProxyType({}),
    accept_changes: bool = False,
) -> Run:
    """Train, evaluate and write the run folder ``out``.

    The folder is created only when model, data and primitives have proved usable.

    Args:
        config: the options.
        sources: the sources that they name.
        out: the run folder.
        plugins: all plug-ins; their ``aang_after_run`` hooks are called when the run has ended.
        observe: makes the observers of each training.
        resume: continue an interrupted run; it ends as if it had not been interrupted.
        interruption: where a request to stop arrives. It takes effect at once before the folder is
            created, and between two rounds afterwards.
        announce: called with the summary of the run before training begins.
        say: called with each sentence that a user may want to read before training begins, such as
            the notes of reading the data.
        copies: contents of files in the folder to which ``config`` refers, such as the copy of data
            in memory, by name.
        accept_changes: continue an interrupted run although its data, encoder, objectives or
            options have changed.

    Returns:
        The finished run.

    Raises:
        AangError: the model, the data or an option cannot be used, or the disk or memory is full.
        Interrupted: ``interruption`` asked to stop; a checkpoint has been written.
    """
    device, processes = check(config)
    if not resume:
        check_push(plugins.registry, config)
    changes = recorded_plugins.changes(out, plugins) if resume else []
    if resume and not accept_changes:
        drawn_rows.check_same(out, sources.draw)
    before = inputs.recorded_inputs(out) if resume else None
    during = During(device, observe, interruption or Interruption(), processes)
    with inputs.threads_of(before, device) as told:
        if told is not None:
            say(told)
        return _trained(
            config,
            sources,
            out,
            plugins,
            during,
            before,
            changes,
            announce=announce,
            say=say,
            copies=copies,
            resume=resume,
            accept_changes=accept_changes,
        )


def _trained(
    config: TrainConfig,
    sources: Sources,
    out: Path,
    plugins: Plugins,
    during: During,
    before: inputs.Inputs | None,
    changes: Sequence[str],
    *,
    announce: Callable[[Summary], None],
    say: Callable[[str], None],
    copies: Mapping[str, str],
    resume: bool,
    accept_changes: bool,
) -> Run:
    """Prepare and train a run; the arguments are those of :func:`train_run`, except these.

    Args:
        during: what all its trainings have in common.
        before: what it began with; None if that is not recorded yet.
        changes: how the plug-ins had changed when it was resumed.
    """
    asked, processes = during.interruption, during.processes
    ready = prepare(config, sources, during.device, processes, announce=announce, say=say)
    config, sources, assembly = ready.config, ready.sources, ready.assembly
    report, reader, first = ready.report, ready.reader, ready.first
    statistics, memory = ready.statistics, ready.memory
    del ready
    now = inputs.inputs_of(config, sources, assembly, reader, during.device, processes)
    refuse_other_inputs(now, processes)
    began = now if before is None else inputs.accepted(out, before, now, accept_changes, say)
    with (
        asked.deferred(),
        resuming.opened(out, resume=resume, processes=processes) as folder,
        lowering_told(memory, during.device),
    ):
        for name, content in copies.items():
            folder.write_text(name, content)
        folder.write_text("config.yaml", reusable(config))
        write_part(folder, recorded_plugins.plugins_used(plugins, sources, changes))
        # Its notes name files as the user did, in a folder that may now be another one.
        if began is not None or not (out / DataStatistics.file).is_file():
            write_part(folder, statistics)
        if sources.draw is not None:
            write_part(folder, drawn_rows.record_of(sources.draw))
        if began is not None:
            write_part(folder, began)
        if sources.pretraining:
            # The first stage trains this encoder, and later stages need its memory.
            del assembly
        stages, sources = _pretrained(config, sources, folder, during, reader, first)
        for stage_result in stages.values():
            if stage_result.note:
                report.note(stage_result.note)
        if stages:
            torch.manual_seed(config.seed)
            assembly = assemble(config, sources, reader=reader)
        result = train_and_evaluate(config, sources, assembly, folder, during)
        if result is None:
            processes.wait()  # until the first process has written everything
            return Run.open(folder.path)
        if stages:
            result = result.model_copy(update={"pretraining": stages})
        if controls := controls_of(sources.task, config.metric, report):
            result = result.model_copy(update={"controls": controls})
        logs = log_digests(folder.path, (DevScores.file, Round.file))
        result = result.model_copy(update={"logs": {n: log["sha256"] for n, log in logs.items()}})
        run = Run.about_to_finish(folder.path, result)
        folder.write_text("model/README.md", card_of(run))
        failures = list(call_after_run(plugins.registry, run))
        for failure in failures:
            report.note(failure)
        record_model(folder, result.model)
        # Written last: this file marks the run as finished.
        write_part(folder, result)
        processes.wait()
    return replace(run, failures=failures, _notes=report.lines())


def _pretrained(
    config: TrainConfig,
    sources: Sources,
    folder: RunFolder,
    during: During,
    reader: SourceReader,
    first: ReadyStage | None,
) -> tuple[dict[str, StageResult], Sources]:
    """Train each stage of pre-training.

    Returns:
        The result of each stage, by name, and the sources with the encoder of the last stage.
    """
    stages = {}
    for stage in sources.pretraining:
        stages[stage.name] = pretrain(
            config,
            sources,
            stage,
            folder,
            reader=reader,
            first=first,
            device=during.device,
            observers=during.observe(stage.name, stage.settings.steps, METRIC),
            interruption=during.interruption,
            processes=during.processes,
        )
        first = None
        sources = sources.after(str(folder.path / stages[stage.name].model))
    return stages, sources
