"""A whole run, from its sources to a complete run folder."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from pydantic import ValidationError

from aang.assembly.around_training import after_training, observers
from aang.assembly.assembly import Assembly, assemble, hold_out
from aang.assembly.prediction import Classifier, predict
from aang.assembly.sources import Sources
from aang.config import with_absolute_paths
from aang.corpora.tokens import TokenRows
from aang.runs import inputs, outcome
from aang.runs.before import check, prepare
from aang.runs.cost import CostLog
from aang.runs.encoder_training import pretrain
from aang.runs.files import ScoresLog, append_line, record_model, what_is_wrong, write_part
from aang.runs.final_fine_tuning import fine_tune
from aang.runs.linear_controls import controls_of
from aang.runs.resume import opened
from aang.runs.run import Run
from aang.runs.schema import (
    Cost,
    DataStatistics,
    DevScores,
    LogitsOnTest,
    Result,
    Round,
    StageResult,
    TrainRows,
)
from aang.runs.training import During, build_trainer, checkpoints_in
from aang_core.errors import NumericalError, PluginError
from aang_core.objectives.stages import ReadReport
from aang_core.plugins import Plugins
from aang_core.storage.durable import summary
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.training.trainer import Observer, Progress


def train_run(
    sources: Sources,
    out: Path,
    plugins: Plugins,
    during: During,
    *,
    resume: bool = False,
    accept_changes: bool = False,
) -> Run:
    """Train, evaluate and write the run folder ``out``.

    The folder is created only when model, data and primitives have proved usable.

    Args:
        sources: the options and the sources that they name.
        out: the run folder.
        plugins: all plug-ins; their ``aang_after_training`` is called when the run has ended.
        during: what its trainings have in common; device and processes are chosen here.
        resume: continue an interrupted run; it ends as if it had not been interrupted.
        accept_changes: continue an interrupted run although its data, encoder, objectives or
            options have changed.

    Returns:
        The finished run.

    Raises:
        AangError: the model, the data or an option cannot be used, or the disk or memory is full.
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    device, processes = check(sources.config, sources.registry, resumed=resume)
    during = replace(during, device=device, processes=processes)
    before: inputs.Inputs | None = None
    changes: list[str] = []
    if resume:
        earlier, newer = inputs.plugin_changes(out, plugins)
        changes = [*earlier, *newer]
        before = inputs.recorded_inputs(out)
    with inputs.threads_of(before, device) as told:
        if told is not None:
            during.say(told)
        assembly, report, statistics = prepare(sources, during)
        now = inputs.inputs_of(assembly, device, processes)
        inputs.refuse_other_inputs(now, processes)
        changed = inputs.accepted(out, before, now, accept_changes, during.say) if before else now
        with (
            during.interruption.deferred(),
            opened(
                out, resume=resume, processes=processes, save_memory=sources.config.save_memory
            ) as folder,
        ):
            write_part(folder, inputs.plugins_used(plugins, sources, changes))
            _write_beginning(folder, assembly, statistics, changed)
            reader, sources = assembly.reader, assembly.sources
            stages: dict[str, StageResult] = {}
            if sources.plan.pretraining:
                # Each stage loads its own encoder, which needs the memory.
                del assembly
                for stage in sources.plan.pretraining:
                    done = stages[stage.name] = pretrain(sources, stage, reader, folder, during)
                    model = folder.path / "pretraining" / stage.name / "model"
                    sources = sources.after(str(model))
                    if done.note:
                        report.note(done.note)
                torch.manual_seed(sources.config.seed)
                assembly = assemble(sources, reader=reader)
            anew = before is not None and inputs.scores_differently(before, now)
            result = train_and_evaluate(assembly, folder, during, anew=anew)
            if result is None:
                processes.wait()  # until the first process has written everything
                return Run.open(folder.path)
            if stages:
                result = result.model_copy(update={"pretraining": stages})
            run = _finished(folder, result, sources, report, plugins)
            processes.wait()
    return run


def _finished(
    folder: RunFolder, result: Result, sources: Sources, report: ReadReport, plugins: Plugins
) -> Run:
    """Write the rest of the run folder once model and evaluation are written."""
    logs = {n: summary(folder.path / n)["sha256"] for n in (DevScores.file, Round.file)}
    config, task = sources.config, sources.task
    task = replace(task, dev=tuple(hold_out(task, config.meta_fraction, config.seed)[0]))
    # A run with --test-predictions is one of many on the same rows, which need one control.
    controls = {} if config.test_predictions else controls_of(task, config.metric, report)
    given = {"controls": controls} if controls else {}
    result = result.model_copy(update={"logs": logs, **given})
    run = Run.about_to_finish(folder.path, result)
    failures = list(after_training(plugins.registry, run))
    for failure in failures:
        report.note(failure)
    record_model(folder, result.model)
    # Written last: this file marks the run as finished.
    write_part(folder, result)
    return replace(run, failures=failures, _notes=report.lines())


def _write_beginning(
    folder: RunFolder,
    assembly: Assembly,
    statistics: DataStatistics,
    changed: inputs.Inputs | None,
) -> None:
    """Write the first files of a run.

    Args:
        folder: the run folder.
        assembly: its options and sources.
        statistics: the content of ``data.json``.
        changed: the inputs to record; None if the run is resumed with the same.
    """
    for name, content in assembly.sources.copies.items():
        folder.write_text(name, content)
    # The file works from any folder, and leaves out the run folder, which no other run can use.
    options = with_absolute_paths(assembly.config).model_dump(mode="json", exclude={"out"})
    folder.write_text("config.yaml", yaml.safe_dump(options))
    # Otherwise keep it: its notes name files relative to the folder where the run began.
    if changed is not None or not (folder.path / DataStatistics.file).is_file():
        write_part(folder, statistics)
    if (draw := assembly.sources.draw) is not None:
        write_part(folder, TrainRows(rows=list(draw.rows), of=draw.of, digest=draw.digest))
    if changed is not None:
        write_part(folder, changed)


def train_and_evaluate(
    assembly: Assembly, folder: RunFolder, during: During, *, anew: bool
) -> Result | None:
    """Train from the last checkpoint, if there is one, then save and evaluate the model.

    Args:
        assembly: what is trained.
        folder: the run folder.
        during: the device, the processes, and who is notified.
        anew: whether to look for the best model only from here on, since earlier scores are not
            comparable.

    Returns:
        The result without pre-training in the first process; None in the others.

    Raises:
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    config, model, processes = assembly.config, assembly.model, during.processes
    cost = CostLog(folder, model.body, processes, compiled=config.compile)
    registry = assembly.sources.registry
    plugins = observers(registry, config, folder.path) if processes.first else []
    watching = during.observe("", config.last_step, config.metric)
    logs = [Round.file, DevScores.file, Cost.file]
    told: list[Observer] = [_Log(folder, config.weighter), cost, *plugins, *watching]
    if config.test_predictions and assembly.test is not None:
        logs.append(LogitsOnTest.file)
        told.append(_TestLog(folder, Classifier(model), assembly.test, processes))
    checkpointer = checkpoints_in(folder, ".", config, during, logs)
    trainer = build_trainer(assembly, during.device, told, checkpointer, processes)
    checkpointer.load(trainer)
    if anew:
        trainer.progress = Progress()
    if processes.first:
        cost.go_on()
    processes.wait()
    with ExitStack() as closing:
        for plugin in plugins:
            closing.callback(plugin.close)
        progress = trainer.train()
    checkpointer.save(trainer)
    during.interruption.check(trainer.bench.steps)
    seconds, body_rows = cost.seconds, cost.rows()
    tuned = fine_tune(assembly, folder, during)
    if not processes.first:
        return None
    evaluated, task_type = outcome.evaluation(assembly)
    write_part(folder, evaluated)
    task_type.finish(model.classifier.model)
    pairs = any(example.text_pair is not None for example in assembly.sources.task.train)
    folder.write_folder("model", lambda to: model.save(to, config.max_length, reads_pairs=pairs))
    for part in model.parts:
        if part.folder is not None:
            folder.write_folder(part.folder, partial(part.save, head=model.classifier))
    checkpointer.drop_older()
    return outcome.result(
        assembly,
        evaluated,
        best_step=trainer.bench.steps if config.train_on_dev else progress.best_step,
        steps=trainer.bench.steps,
        skipped_steps=trainer.bench.numbers.skipped,
        train_seconds=round(seconds, 3),
        body_rows=body_rows,
        peak_memory_bytes=outcome.peak_memory_bytes(during.device),
        processes=processes.size if processes.size > 1 else None,
        final_fine_tuning=tuned,
    )


class _Log(ScoresLog):
    """Writes ``metrics.jsonl`` and ``weights.jsonl``."""

    def __init__(self, folder: RunFolder, weighter: str) -> None:
        super().__init__(folder)
        self._weighter = weighter

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        try:
            line = Round.model_validate(record)
        except ValidationError as error:
            raise PluginError(
                f"weighter {self._weighter}: its record does not fit weights.jsonl: "
                f"{what_is_wrong(error)}"
            ) from error
        append_line(self._folder, line)


@dataclass
class _TestLog:
    """Writes ``test_predictions.jsonl``; all processes share the rows, and the first one writes."""

    folder: RunFolder
    classifier: Classifier
    test: TokenRows
    processes: Processes

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Does nothing."""

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        logits = predict(self.classifier, self.test, processes=self.processes)
        if not logits.isfinite().all():
            raise NumericalError(
                f"step {step}: the model computes NaN or infinity for test rows: training has "
                "diverged; lower the learning rate"
            )
        append_line(self.folder, LogitsOnTest(step=step, logits=logits.tolist()))
