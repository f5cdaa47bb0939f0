"""Scores and errors of a classifier on labelled data: by metric, by class, and as a matrix."""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from aang.assembly.prediction import predict
from aang.corpora.cache import cache_folder
from aang.corpora.labelled import LabelledRows
from aang.corpora.tokens import tokenize
from aang.corpora.unseen_classes import know_unseen
from aang.runs.predictor import Predictor
from aang.runs.schema import ClassScores, PartEvaluation
from aang.task_types.task_type import TaskType
from aang_core.errors import DataError, NumericalError
from aang_core.objectives.stages import ReadReport

RESAMPLES = 1000
MOST_DRAWN = 20_000_000
_NUMBERS_AT_ONCE = 2_000_000


def evaluate_rows(
    predictor: Predictor, rows: LabelledRows, report: ReadReport, *, batch_size: int = 64
) -> PartEvaluation:
    """Score a saved classifier on labelled data.

    Args:
        predictor: the classifier.
        rows: the examples, from :func:`.labelled.read_rows` or :func:`.labelled.examples_of`.
        report: collects notes about the data, such as texts that were cut.
        batch_size: rows per batch.

    Returns:
        The metrics, the scores of every class, and the confusion matrix. Examples of a class that
        the classifier does not know count as wrong, and the report says how many there are.

    Raises:
        DataError: there is no example, or none with a class that the classifier knows.
        NumericalError: the classifier computes NaN or infinity.
    """
    if not rows.examples:
        raise DataError(f"{rows.source}: there is no example in it.")
    task_type = know_unseen(
        predictor.task_type,
        [(rows.source, rows)],
        report,
        predictor.columns.option_of("label"),
        lacking="the model does not know",
    )
    tokenized = tokenize(
        rows.examples,
        predictor.tokenizer,
        max_length=predictor.max_length,
        cache=cache_folder(),
        task_type=task_type,
        report=report,
    )
    logits = predict(_Logits(predictor.model), tokenized, batch_size=batch_size)
    if not logits.isfinite().all():
        raise NumericalError(
            f"{rows.source}: the model computes NaN or infinity for its texts, so it cannot be "
            "scored; train it again with a lower learning rate"
        )
    return evaluation_of(task_type, tokenized.truth(), logits)


def evaluation_of(task_type: TaskType, labels: Tensor, logits: Tensor) -> PartEvaluation:
    """The scores and errors of predictions.

    Args:
        task_type: the kind of end task.
        labels: the true labels, ``[N, ...]``, or ``[N, T]`` of tokens.
        logits: what the model computes for them.
    """
    errors = task_type.errors(labels, logits)
    matrix = {"confusion": [list(row) for row in errors.confusion]} if errors.confusion else {}
    return PartEvaluation.model_validate(
        {
            "scores": dict(task_type.scores(labels, logits)),
            "intervals": intervals_of(task_type, labels, logits),
            "classes": {
                name: ClassScores.model_validate(values) for name, values in errors.classes.items()
            },
            **matrix,
        }
    )


def intervals_of(task_type: TaskType, labels: Tensor, logits: Tensor) -> dict[str, list[float]]:
    """How far each score may be off because these rows are few: 95% bootstrap intervals.

    The percentiles of 1,000 resamples of the rows (fewer of more than 20,000 rows), the same in
    every call. That a model was chosen by its score on these rows is not in the interval.

    Args:
        task_type: the kind of end task.
        labels: the true labels of N rows.
        logits: what the model computes for them.
    """
    rows, generator = len(labels), torch.Generator().manual_seed(0)
    # Of so many rows that it would take long, the interval is narrow anyway.
    count = max(RESAMPLES // 10, min(RESAMPLES, MOST_DRAWN // rows))
    found = []
    for resamples in torch.arange(count).split(max(1, _NUMBERS_AT_ONCE // rows)):
        drawn = torch.randint(rows, (len(resamples), rows), generator=generator)
        counts = torch.zeros(drawn.shape, dtype=torch.float64)
        counts.scatter_add_(1, drawn, torch.ones_like(counts))
        found.append(task_type.resampled(labels, logits, counts))
    bounds = torch.tensor([0.025, 0.975], dtype=torch.float64)
    return {
        name: torch.cat([of[name] for of in found]).quantile(bounds).tolist() for name in found[0]
    }


class _Logits(nn.Module):
    """A transformers classifier that returns its logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits
