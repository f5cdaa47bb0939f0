"""The numbers of a run: statistics of its data, its scores and its errors."""

import resource
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from aang_core.assembly.assembly import Assembly
from aang_core.assembly.prediction import Classifier, predict
from aang_core.assembly.sources import Sources
from aang_core.assembly.stream_rows import StreamRows
from aang_core.config import TrainConfig
from aang_core.corpora.labelled_task import LabelledTask
from aang_core.corpora.tokens import TokenRows
from aang_core.runs.evaluating import evaluation_of
from aang_core.runs.schema import (
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
from aang_core.training.evaluation import majority_scores


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
        digest=task.digest,
        parts={
            name: LabelledRows(examples=len(rows), cut=rows.truncated, labels=_counts(task, rows))
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


def _counts(task: LabelledTask, rows: TokenRows) -> dict[str, int]:
    assert rows.labels is not None
    counted = Counter(rows.labels.tolist())
    return {label: counted[i] for i, label in enumerate(task.labels)}


def _sources(assembly: Assembly) -> dict[str, TokenRows | StreamRows]:
    """The rows of each data source that objectives read, by its name."""
    return {task.factors["data"]: task.rows for task in assembly.auxiliaries}


def evaluation(sources: Sources, assembly: Assembly) -> Evaluation:
    """Scores, confusion and per-class scores of the model in its current state, on dev and test.

    There is no confusion matrix above :data:`~.evaluating.MOST_CONFUSED` classes.
    """
    labels = list(sources.task.labels)
    classifier = Classifier(assembly.model.body, assembly.model.classifier)
    parts: dict[str, Any] = {}
    for part, rows in (("dev", assembly.dev), ("test", assembly.test)):
        if rows is None:
            continue
        assert rows.labels is not None
        truth = rows.labels.tolist()
        predicted = predict(classifier, rows).argmax(dim=-1).tolist()
        parts[part] = evaluation_of(truth, predicted, labels)
    return Evaluation(labels=labels, **parts)


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
        space=config.space,
        seed=config.seed,
        objectives=len(assembly.auxiliaries),
        metric=ChosenScores(name=config.metric, dev=chosen.dev, test=chosen.test),
        majority=_majority(config, assembly),
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
    """The metric of always predicting the most frequent class of train."""
    train = assembly.end_task.rows.labels
    assert train is not None

    def score(rows: TokenRows) -> float:
        assert rows.labels is not None
        return majority_scores(train.tolist(), rows.labels.tolist())[config.metric]

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
