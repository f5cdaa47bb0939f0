"""The numbers of a run: statistics of its data, its scores and its errors."""

import resource
import sys
from dataclasses import dataclass
from typing import Any

import torch

from aang.assembly.assembly import Assembly
from aang.assembly.prediction import Classifier, predict
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.config.paths import name_of_space
from aang.corpora.tokens import TokenRows
from aang.runs.evaluating import evaluation_of
from aang.runs.schema import (
    ChosenScores,
    DataStatistics,
    Evaluation,
    FinalFineTuning,
    LabelledRows,
    PlainFineTuning,
    Result,
    Scores,
    SourceTexts,
)
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.task_type import TaskType


def data_statistics(sources: Sources, assembly: Assembly) -> DataStatistics:
    """Sizes, label counts, numbers of cut texts, and notes about the data."""
    task = sources.task
    parts = {"train": assembly.end_task.rows, "dev": assembly.dev, "test": assembly.test}
    given: dict[str, Any] = {}
    if assembly.class_weights is not None:
        given["class_weights"] = dict(assembly.class_weights)
    if assembly.end_task.strata is not None:
        given["balanced_rows"] = True
    return DataStatistics(
        task=task.name,
        task_type=task.task_type.name,
        digest=task.digest,
        parts={
            name: LabelledRows(
                examples=len(rows),
                cut=rows.truncated,
                labels=task.task_type.counts(rows.truth()),
                **({"left_out": task.left_out[name]} if name in task.left_out else {}),
            )
            for name, rows in parts.items()
            if rows is not None
        },
        sources={
            name: SourceTexts(texts=len(rows), cut=rows.truncated)
            for name, rows in _sources(assembly).items()
        },
        notes=list(sources.report.lines()),
        **given,
    )


def _sources(assembly: Assembly) -> dict[str, TokenRows | StreamRows]:
    """The rows of each data source that objectives read, by its name."""
    return {task.factors["data"]: task.rows for task in assembly.auxiliaries}


def evaluation(
    config: TrainConfig, sources: Sources, assembly: Assembly
) -> tuple[Evaluation, TaskType]:
    """Scores and errors of the model in its current state, on dev and test.

    Returns:
        The evaluation, and the kind of task with what was chosen on dev for its predictions.
    """
    model = Classifier(assembly.model.body, assembly.model.classifier)
    labels, logits = assembly.dev.truth(), predict(model, assembly.dev)
    task_type = sources.task.task_type.tuned(labels, logits, config.metric)
    parts: dict[str, Any] = {"dev": evaluation_of(task_type, labels, logits)}
    if assembly.test is not None:
        found = predict(model, assembly.test)
        parts["test"] = evaluation_of(task_type, assembly.test.truth(), found)
    chosen = dict(task_type.settings())
    given: dict[str, Any] = {"chosen": chosen} if chosen else {}
    of_train = set(task_type.knowing(()).classes)
    if unseen := [name for name in task_type.classes if name not in of_train]:
        given["unseen"] = unseen
    return Evaluation(labels=list(task_type.classes), **given, **parts), task_type


@dataclass(frozen=True)
class Took:
    """The cost of a training.

    Attributes:
        steps: the number of optimiser steps.
        skipped: how many of them were skipped because a loss or gradient was not finite.
        seconds: seconds of training, over all parts of an interrupted run.
        body_rows: rows that went through the body to train.
        memory_bytes: the peak memory.
        processes: how many processes shared the training.
    """

    steps: int
    skipped: int
    seconds: float
    body_rows: int
    memory_bytes: int
    processes: int


def result(
    config: TrainConfig,
    sources: Sources,
    assembly: Assembly,
    evaluated: Evaluation,
    best_step: int,
    took: Took,
    tuned: FinalFineTuning | None,
) -> Result:
    """The result of a run, except for its stages of pre-training."""
    given: dict[str, Any] = {}
    if took.skipped:
        given["skipped_steps"] = took.skipped
    if tuned is not None:
        given["final_fine_tuning"] = tuned
    if config.recipe is not None:
        given["recipe"] = config.recipe
    if sources.fine_tuning is not None:
        given["fine_tuning"] = PlainFineTuning.model_validate(dict(sources.fine_tuning))
    if took.processes > 1:
        given["processes"] = took.processes
    chosen = chosen_scores(config, evaluated)
    return Result(
        weighter=config.weighter,
        space=name_of_space(config.space),
        seed=config.seed,
        objectives=len(assembly.auxiliaries),
        metric=ChosenScores(
            name=config.metric,
            dev=chosen.dev,
            test=chosen.test,
            intervals={n: p.intervals[config.metric] for n, p in evaluated.parts.items()},
        ),
        majority=_majority(config, assembly),
        **_kind(sources.task.task_type),
        best_step=best_step,
        steps=took.steps,
        train_seconds=took.seconds,
        body_rows=took.body_rows,
        precision=config.precision,
        peak_memory_bytes=took.memory_bytes,
        model="model",
        **given,
    )


def chosen_scores(config: TrainConfig, evaluated: Evaluation) -> Scores:
    """The scores of the run's metric."""
    by_part = {name: part.scores[config.metric] for name, part in evaluated.parts.items()}
    return Scores(dev=by_part["dev"], test=by_part.get("test"))


def _majority(config: TrainConfig, assembly: Assembly) -> Scores:
    """The metric of the best prediction that ignores the text."""
    task_type, train = assembly.end_task.task_type, assembly.end_task.rows.truth()

    def score(rows: TokenRows) -> float:
        return task_type.baseline_scores(train, rows.truth())[config.metric]

    test = None if assembly.test is None else score(assembly.test)
    return Scores(dev=score(assembly.dev), test=test)


def _kind(task_type: TaskType) -> dict[str, Any]:
    """What a result says of its end task, if that is not a single-label task."""
    kind = {}
    if task_type.baseline != ONE_CLASS.baseline:
        kind["baseline"] = task_type.baseline
    if task_type.head.architecture == "token-classification":
        kind["pipeline"] = "token-classification"
    return kind


def peak_memory_bytes(device: torch.device | None = None) -> int:
    """The peak memory so far: of the GPU if it is used, otherwise of this process.

    Args:
        device: the device that computes; None for a GPU if anything uses it.
    """
    if torch.cuda.is_initialized() if device is None else device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
