"""What a run leaves behind in numbers: its data, its scores, and where it errs."""

import resource
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from aang_core.assembly.assembly import Assembly
from aang_core.assembly.prediction import Classifier, predict
from aang_core.assembly.sources import Sources
from aang_core.assembly.stream_rows import StreamRows
from aang_core.config import TrainConfig
from aang_core.corpora.labelled_task import LabelledTask
from aang_core.corpora.tokens import TokenRows
from aang_core.training.evaluation import confusion, majority_scores, per_class, scores

MOST_CONFUSED = 1000
"""Of more classes there is no confusion matrix: it grows with their square."""


def data_statistics(sources: Sources, assembly: Assembly) -> dict[str, Any]:
    """Sizes, label counts, cut texts, and the notes of reading: what ``data.json`` holds."""
    task = sources.task
    parts = {"train": assembly.end_task.rows, "dev": assembly.dev, "test": assembly.test}
    return {
        "task": task.name,
        "digest": task.digest,
        "parts": {
            name: {"examples": len(rows), "cut": rows.truncated, "labels": _counts(task, rows)}
            for name, rows in parts.items()
            if rows is not None
        },
        "sources": {
            name: {"texts": len(rows), "cut": rows.truncated}
            for name, rows in _sources(assembly).items()
        },
        "notes": sources.report.lines(),
    }


def _counts(task: LabelledTask, rows: TokenRows) -> dict[str, int]:
    assert rows.labels is not None
    counted = Counter(rows.labels.tolist())
    return {label: counted[i] for i, label in enumerate(task.labels)}


def _sources(assembly: Assembly) -> dict[str, TokenRows | StreamRows]:
    """The rows of each data source that objectives read, by its name."""
    return {task.factors["data"]: task.rows for task in assembly.auxiliaries}


def evaluation(sources: Sources, assembly: Assembly) -> dict[str, Any]:
    """Scores, confusion and per-class scores of the model as it stands, on dev and test.

    There is no confusion of more than :data:`MOST_CONFUSED` classes.
    """
    labels = sources.task.labels
    found: dict[str, Any] = {"labels": list(labels)}
    classifier = Classifier(assembly.model.body, assembly.model.classifier)
    for part, rows in (("dev", assembly.dev), ("test", assembly.test)):
        if rows is None:
            continue
        assert rows.labels is not None
        truth = rows.labels.tolist()
        predicted = predict(classifier, rows).argmax(dim=-1).tolist()
        found[part] = {
            "scores": dict(scores(truth, predicted)),
            "classes": dict(zip(labels, per_class(truth, predicted, len(labels)), strict=True)),
        }
        if len(labels) <= MOST_CONFUSED:
            found[part]["confusion"] = confusion(truth, predicted, len(labels))
    return found


def result(
    config: TrainConfig,
    assembly: Assembly,
    evaluated: Mapping[str, Any],
    *,
    best_step: int,
    steps: int,
) -> dict[str, Any]:
    """What ``result.json`` begins with.

    evaluated: as :func:`evaluation` gives it.
    """
    train = assembly.end_task.rows.labels
    assert train is not None
    metric: dict[str, Any] = {"name": config.metric}
    majority: dict[str, Any] = {}
    for part, rows in (("dev", assembly.dev), ("test", assembly.test)):
        if rows is None:
            metric[part] = majority[part] = None
            continue
        assert rows.labels is not None
        metric[part] = evaluated[part]["scores"][config.metric]
        majority[part] = majority_scores(train.tolist(), rows.labels.tolist())[config.metric]
    return {
        "weighter": config.weighter,
        "space": config.space,
        "seed": config.seed,
        "objectives": len(assembly.auxiliaries),
        "metric": metric,
        "majority": majority,
        "best_step": best_step,
        "steps": steps,
    }


def peak_memory_bytes(device: torch.device) -> int:
    """The largest memory in use so far: of the GPU for a GPU, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
