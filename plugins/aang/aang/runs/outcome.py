"""The numbers of a run: statistics of its data, its scores and its errors."""

import resource
import sys
from dataclasses import replace
from typing import Any

import torch

from aang.assembly.assembly import Assembly
from aang.assembly.prediction import Classifier, predict
from aang.config import TrainConfig
from aang.config.paths import name_of_space
from aang.corpora.tokens import TokenRows
from aang.runs.evaluate import evaluation_of
from aang.runs.schema import (
    ChosenScores,
    DataStatistics,
    Evaluation,
    LabelledRows,
    Result,
    Scores,
    SourceTexts,
)
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.task_type import TaskType
from aang_core.objectives.stages import ReadReport


def data_statistics(assembly: Assembly, report: ReadReport) -> DataStatistics:
    """Sizes, label counts, numbers of cut texts, and the notes of ``report`` about the data."""
    task = assembly.sources.task
    parts = {"train": assembly.end_task.rows, "dev": assembly.dev, "test": assembly.test}
    sources = {o.factors["data"]: o.rows for o in assembly.auxiliaries}
    return DataStatistics.without_empty(
        task=task.name,
        task_type=task.task_type.name,
        digest=task.digest,
        parts={
            name: LabelledRows.without_empty(
                examples=len(rows),
                cut=rows.truncated,
                labels=dict(task.task_type.counts(rows.truth())),
                left_out=task.left_out.get(name, 0),
            )
            for name, rows in parts.items()
            if rows is not None
        },
        sources={
            n: SourceTexts(texts=len(rows), cut=rows.truncated) for n, rows in sources.items()
        },
        class_weights=dict(assembly.class_weights or {}),
        balanced_rows=assembly.end_task.strata is not None,
        notes=list(report.lines()),
    )


def evaluation(assembly: Assembly) -> tuple[Evaluation, TaskType]:
    """Scores and errors of the model in its current state, on dev and test.

    Returns:
        The evaluation, and the kind of task with what was chosen on dev, such as a threshold.
    """
    model = Classifier(assembly.model)
    labels, logits = assembly.dev.truth(), predict(model, assembly.dev)
    task_type = assembly.sources.task.task_type.tuned(labels, logits, assembly.config.metric)
    test = None
    if assembly.test is not None:
        found = predict(model, assembly.test)
        test = evaluation_of(task_type, assembly.test.truth(), found)
    of_train = set(replace(task_type, unseen=()).classes)
    evaluated = Evaluation.without_empty(
        labels=list(task_type.classes),
        unseen=[name for name in task_type.classes if name not in of_train],
        chosen=dict(task_type.settings()),
        dev=evaluation_of(task_type, labels, logits),
        test=test,
    )
    return evaluated, task_type


def result(assembly: Assembly, evaluated: Evaluation, **took: Any) -> Result:
    """The result of a run.

    Args:
        assembly: its options and rows.
        evaluated: the scores of its model.
        **took: further fields of the result: what the training took and chose.
    """
    sources, config = assembly.sources, assembly.config
    task_type = sources.task.task_type
    return Result.without_empty(
        weighter=config.weighter,
        space=name_of_space(config.space),
        seed=config.seed,
        objectives=len(assembly.auxiliaries),
        metric=ChosenScores(
            **chosen_scores(config, evaluated).document(),
            name=config.metric,
            intervals={n: p.intervals[config.metric] for n, p in evaluated.parts.items()},
        ),
        majority=_majority(assembly),
        baseline=None if task_type.baseline == ONE_CLASS.baseline else task_type.baseline,
        pipeline=None if task_type.pipeline == ONE_CLASS.pipeline else task_type.pipeline,
        precision=config.precision,
        model="model",
        recipe=config.recipe,
        fine_tuning=sources.fine_tuning,
        trained_on_dev=config.train_on_dev,
        **took,
    )


def chosen_scores(config: TrainConfig, evaluated: Evaluation) -> Scores:
    """The scores of the run's metric."""
    by_part = {name: part.scores[config.metric] for name, part in evaluated.parts.items()}
    return Scores(dev=by_part["dev"], test=by_part.get("test"))


def _majority(assembly: Assembly) -> Scores:
    """The metric of the best prediction that ignores the text."""
    task_type, train = assembly.end_task.task_type, assembly.end_task.rows.truth()

    def score(rows: TokenRows) -> float:
        return task_type.baseline_scores(train, rows.truth())[assembly.config.metric]

    test = None if assembly.test is None else score(assembly.test)
    return Scores(dev=score(assembly.dev), test=test)


def peak_memory_bytes(device: torch.device | None = None) -> int:
    """The peak memory so far: of the GPU if it is used, otherwise of this process.

    Args:
        device: the device that computes; None for a GPU if anything uses it.
    """
    if torch.cuda.is_initialized() if device is None else device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
