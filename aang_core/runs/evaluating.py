"""Scores and errors of a classifier on labelled data: by metric, by class, and as a matrix."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from aang_core.assembly.prediction import predict
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.labelled import LabelledRows
from aang_core.corpora.tokens import tokenize
from aang_core.errors import DataError
from aang_core.objectives.stages import ReadReport
from aang_core.runs.predictor import Predictor
from aang_core.runs.schema import ClassScores, PartEvaluation
from aang_core.training.evaluation import confusion, per_class, scores

MOST_CONFUSED = 1000
"""No confusion matrix above this many classes: it grows with their square."""


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
        The metrics, the scores of every class that the classifier knows, and the confusion matrix.

    Raises:
        DataError: there is no example, or one has a label that the classifier does not know; the
            message names its place.
    """
    labels = predictor.labels
    if not rows.examples:
        raise DataError(f"{rows.source}: there is no example in it.")
    for example, place in zip(rows.examples, rows.places, strict=True):
        if example.label not in labels:
            raise DataError(
                f"{place}: the model knows no label {example.label!r}; it knows "
                f"{', '.join(sorted(labels))}"
            )
    tokenized = tokenize(
        rows.examples,
        predictor.tokenizer,
        max_length=predictor.max_length,
        cache=cache_folder(),
        label_ids={label: i for i, label in enumerate(labels)},
        report=report,
    )
    assert tokenized.labels is not None
    logits = predict(_Logits(predictor.model), tokenized, batch_size=batch_size)
    return evaluation_of(tokenized.labels.tolist(), logits.argmax(dim=-1).tolist(), labels)


def evaluation_of(
    truth: Sequence[int], predicted: Sequence[int], labels: Sequence[str]
) -> PartEvaluation:
    """The scores of predicted classes.

    Args:
        truth: ids of the true classes.
        predicted: ids of the predicted classes, as many.
        labels: the classes by id. Above :data:`MOST_CONFUSED` there is no confusion matrix.
    """
    matrix: dict[str, Any] = {}
    if len(labels) <= MOST_CONFUSED:
        matrix["confusion"] = confusion(truth, predicted, len(labels))
    classes = per_class(truth, predicted, len(labels))
    return PartEvaluation.model_validate(
        {
            "scores": dict(scores(truth, predicted)),
            "classes": {
                label: ClassScores.model_validate(values)
                for label, values in zip(labels, classes, strict=True)
            },
            **matrix,
        }
    )


class _Logits(nn.Module):
    """A transformers classifier that returns its logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits
