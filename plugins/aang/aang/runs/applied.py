"""A classifier applied to data in memory or in files: predictions and scores as tables."""

import html
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aang.corpora.in_memory import table_in_memory
from aang.corpora.labelled import read_rows, texts_of
from aang.corpora.tables import TableSource, read_table
from aang.runs.evaluating import evaluate_rows
from aang.runs.prediction_files import PREDICTED
from aang.runs.predictor import WINDOW, Predictor
from aang.runs.schema import PartEvaluation
from aang_core.errors import DataError
from aang_core.objectives.stages import ReadReport

if TYPE_CHECKING:
    from pandas import DataFrame, Index


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

    def _repr_html_(self) -> str:
        """The scores and a table of the classes, for notebooks."""
        notes = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.notes)
        classes = self.classes
        classes[classes.columns.difference(["examples"])] *= 100
        table = classes.to_html(float_format="%.2f")
        return f"<p>{html.escape(repr(self))}</p>{table}{notes}"


def predictions(predictor: Predictor, data: object, *, batch_size: int) -> "DataFrame":
    """Predict the labels of texts.

    Args:
        predictor: the classifier.
        data: a text; a list or Series of texts, or of pairs; a DataFrame, a Dataset, a list of
            records or a dict of columns, with the columns that the classifier was trained with; or
            the path of a file.
        batch_size: texts per batch.

    Returns:
        A row per text, under the index of ``data`` if it has one: ``predicted``, and the
        probability of each class, ``P(class)``.

    Raises:
        DataError: the data cannot be used; the message names the row.
    """
    from pandas import DataFrame

    columns, report = predictor.columns, ReadReport()
    source: Path | TableSource
    if isinstance(data, Path):
        source = data
    else:
        texts = [data] if isinstance(data, str) else data
        source = table_in_memory(texts, "data", Path("data"), columns, labelled=False)
    table = read_table(source, columns.texts())
    if table.columns is not None:
        _require(table.columns, columns.texts(), table.source)
    found = predictor.predict(
        (texts_of(values, columns, table.where(number), report) for number, values in table.rows),
        batch_size=batch_size,
        window=WINDOW,
    )
    rows = [
        {PREDICTED: p.label} | {f"P({name})": share for name, share in p.probabilities.items()}
        for p in found
    ]
    names = [PREDICTED, *(f"P({label})" for label in predictor.labels)]
    return DataFrame(rows, columns=names, index=_index_of(data))


def _require(present: Sequence[str], wanted: Sequence[str], source: str) -> None:
    if absent := [name for name in wanted if name not in present]:
        raise DataError(
            f"{source}: there is no column {absent[0]!r}, which the classifier was trained with; "
            f"the columns are {', '.join(map(repr, present))}. Rename the right one"
        )


def _index_of(data: object) -> "Index[int] | None":
    """The index of a DataFrame or Series, so that its predictions can be joined to it."""
    if not (hasattr(data, "iloc") and hasattr(data, "index")):
        return None
    index: Index[int] = data.index
    if twice := index[index.duplicated()].tolist():
        warnings.warn(
            f"the index holds {twice[0]!r} more than once, and DataFrame.join would pair each such "
            "row with several predictions; pd.concat([frame, predictions], axis=1) puts each "
            "prediction beside its row",
            stacklevel=4,
        )
    return index


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

    Raises:
        DataError: the data cannot be used, or has no class that the classifier knows.
    """
    columns, report, task_type = predictor.columns, ReadReport(), predictor.task_type
    if isinstance(data, str | Path):
        source: Path | TableSource = Path(data)
    else:
        source = table_in_memory(data, "data", Path("data"), columns)
        if source.columns is not None:
            _require(source.columns, columns.names(), source.source)
        if task_type.name == "single-label":
            source.require_one_type(columns.label)
    rows = read_rows(source, columns, report, task_type, skip_bad_rows=skip_bad_rows)
    found = evaluate_rows(predictor, rows, report, batch_size=batch_size)
    return AppliedScores(rows.source, found, report.lines())
