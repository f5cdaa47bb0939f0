"""Scores and errors of a classifier on labelled data: by metric, by class, and as a matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from aang.corpora.in_memory import require_one_type, table_in_memory
from aang.corpora.labelled import know_unseen, read_rows
from aang.corpora.tables import TableInMemory
from aang.runs.predict import Predictor, require_columns_of_training
from aang.runs.schema import PartEvaluation
from aang.task_types.task_type import TaskType
from aang_core.errors import NumericalError
from aang_core.objectives.stages import ReadReport

if TYPE_CHECKING:
    from pandas import DataFrame

RESAMPLES = 1000
MOST_DRAWN = 20_000_000
_NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class AppliedScores:
    """The scores of a classifier on labelled data, which notebooks show as a table.

    Attributes:
        source: what messages call the data.
        evaluation: metrics, scores of every class, and the confusion matrix.
        notes: what was noticed about the data, a sentence each.
    """

    source: str
    evaluation: PartEvaluation
    notes: Sequence[str]

    @property
    def scores(self) -> Mapping[str, float]:
        """Every metric by its name."""
        return {str(name): value for name, value in self.evaluation.scores.items()}

    @property
    def classes(self) -> "DataFrame":
        """Precision, recall, F1 and number of examples: a row per class."""
        from pandas import DataFrame

        rows = {label: found.document() for label, found in self.evaluation.classes.items()}
        return DataFrame.from_dict(rows, orient="index")

    @property
    def confusion(self) -> "DataFrame":
        """How often each class, a row, was predicted as each class, a column."""
        from pandas import DataFrame

        labels = list(self.evaluation.classes) if self.evaluation.confusion else []
        return DataFrame(self.evaluation.confusion, index=labels, columns=labels)

    def __repr__(self) -> str:
        found = self.evaluation
        named = ", ".join(f"{name} {found.shown(name)}" for name in found.scores)
        return f"{self.source}: {named}"


def applied_scores(
    predictor: Predictor, data: object, *, batch_size: int, skip_bad_rows: bool = False
) -> AppliedScores:
    """Score a classifier on labelled data.

    Args:
        predictor: the classifier.
        data: a pair ``(texts, labels)``; a DataFrame, a Dataset, a list of records or a dict of
            columns, with the columns that the classifier was trained with; or the path of a file.
        batch_size: rows per batch.
        skip_bad_rows: leave out rows that lack a text or a label; otherwise they are an error.

    Returns:
        The metrics, the scores of every class, and the confusion matrix. Examples of a class that
        the classifier does not know count as wrong, and the notes say how many there are.

    Raises:
        DataError: the data cannot be used, has no example, or no class that the classifier knows.
        NumericalError: the classifier computes NaN or infinity.
    """
    columns, report, task_type = predictor.columns, ReadReport(), predictor.task_type
    if isinstance(data, str | Path):
        source: Path | TableInMemory = Path(data)
    else:
        source = table_in_memory(data, "data", columns)
        if source.columns is not None:
            require_columns_of_training(source.columns, columns.names(), source.source)
        if task_type.names_classes and not task_type.several_classes:
            require_one_type(source, columns.label)
    rows = read_rows(source, columns, report, task_type, skip_bad_rows=skip_bad_rows)
    task_type = know_unseen(
        task_type,
        [(rows.source, rows)],
        report,
        columns.option("label"),
        lacking="the model does not know",
    )
    labels, logits = predictor.labelled_logits(rows, task_type, batch_size, report)
    if not logits.isfinite().all():
        raise NumericalError(
            f"{rows.source}: the model computes NaN or infinity for its texts, so it cannot be "
            "scored; train it again with a lower learning rate"
        )
    found = evaluation_of(task_type, labels, logits)
    return AppliedScores(rows.source, found, report.lines())


def evaluation_of(task_type: TaskType, labels: Tensor, logits: Tensor) -> PartEvaluation:
    """The scores and errors of predictions.

    Args:
        task_type: the kind of end task.
        labels: the true labels, ``[N, ...]``, or ``[N, T]`` of tokens.
        logits: what the model computes for them.
    """
    errors = task_type.errors(labels, logits)
    return PartEvaluation.without_empty(
        scores=dict(task_type.scores(labels, logits)),
        intervals=intervals_of(task_type, labels, logits),
        classes={name: dict(values) for name, values in errors.classes.items()},
        confusion=[list(row) for row in errors.confusion],
    )


def intervals_of(task_type: TaskType, labels: Tensor, logits: Tensor) -> dict[str, list[float]]:
    """How far each score may be off because these rows are few: 95% bootstrap intervals.

    The percentiles of 1,000 resamples of the rows (fewer for more than 20,000 rows), the same in
    every call. They do not allow for a model that was chosen by its score on these rows.

    Args:
        task_type: the kind of end task.
        labels: the true labels of N rows.
        logits: what the model computes for them.
    """
    rows, generator = len(labels), torch.Generator().manual_seed(0)
    # With many rows, resampling takes long and the interval is narrow anyway.
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
