"""Linear controls: is a deep model worth it on this task at all?

A linear model (logistic regression, one per class if a text may have several, or ridge regression)
on TF-IDF of words and pairs of words, or on given features. The penalty is chosen by
cross-validation on train, so dev and test are only scored.

scikit-learn is imported in functions: it takes a second, and commands that only read results should
not wait for it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aang.corpora.labelled_task import LabelledTask
from aang.runs.evaluate import intervals_of
from aang.runs.schema import Scores
from aang.task_types.metrics import Metric
from aang.task_types.task_type import TaskType
from aang_core.objectives.stages import Example, ReadReport

TF_IDF = "tf-idf"
"""The name of the control that every run has."""

PENALTIES: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
"""The inverse penalties C that are tried on TF-IDF."""

FOLDS = 5

MOST_WORK = 5_000_000
"""Above this many characters of train times classes, about 20 seconds on a core, a run has no
control. Twenty characters of dev and test count as much as one of train and class."""

Model = Callable[[Any], Tensor]
"""Maps features of N texts to what the end task's head would compute, ``[N, C]``."""


@dataclass(frozen=True)
class LinearResult:
    """The result of a linear control.

    Attributes:
        scores: on dev and, if the task has one, on test.
        penalty: the inverse penalty C that was chosen.
        intervals: the 95% bootstrap interval of each score.
    """

    scores: Scores
    penalty: float
    intervals: Mapping[str, Sequence[float]]


def controls_of(task: LabelledTask, metric: Metric, report: ReadReport) -> dict[str, Scores]:
    """The scores of a run's control: the linear model on TF-IDF of all its training rows.

    A task that labels words has none. One that would take minutes is left out, with a note.

    Args:
        task: the run's task.
        metric: the run's metric.
        report: collects notes.
    """
    kind = task.task_type
    if kind.linear is None:
        return {}
    characters, others = (
        sum(len(e.text) + len(e.text_pair or "") for e in part)
        for part in (task.train, task.dev + task.test)
    )
    if characters * len(kind.labels) + others // 20 > MOST_WORK:
        report.note(
            "TF-IDF with a linear model, the control of every run, is left out: "
            f"{len(task.train)} training texts of {characters} characters in all"
            + (f" and {len(kind.classes)} classes" if kind.classes else "")
            + f", with {others} of dev and test, would take it minutes"
        )
        return {}
    parts = tf_idf((task.train, task.dev, task.test))
    return {TF_IDF: linear_result(parts, task, metric, PENALTIES).scores}


def tf_idf(parts: Sequence[Sequence[Example]]) -> list[Any]:
    """TF-IDF of each part, fitted to the first; None for an empty part."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Punctuation counts, because tasks use it to mark what they ask about, as in "[[ this ]]".
    pattern = r"(?u)\w+|[^\w\s]+"
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=pattern)
    texts = [[" ".join(filter(None, (e.text, e.text_pair))) for e in part] for part in parts]
    return [
        vectors.fit_transform(texts[0]),
        *(vectors.transform(t) if t else None for t in texts[1:]),
    ]


def linear_result(
    features: Sequence[Any], task: LabelledTask, metric: Metric, penalties: Sequence[float]
) -> LinearResult:
    """The scores with the penalty that is best by cross-validation on train.

    What the kind of task chooses for its predictions, such as a threshold, is chosen there as well.

    Args:
        features: of train, dev and test, ``[N, F]`` each; None for a test without examples.
        task: a task of a kind that a linear model can learn.
        metric: what the best penalty is chosen by, and what is returned.
        penalties: inverse penalties, the strongest penalty first, which wins ties.
    """
    train = _labels(task, task.train)
    kind = task.task_type
    folds = _folds(kind.strata([e.label for e in task.train if e.label is not None]))
    parts = [np.flatnonzero(folds == k) for k in range(folds.max() + 1)]
    truth = train[np.concatenate(parts)]
    found: list[tuple[float, float, TaskType]] = []
    for penalty in penalties:
        # Scored together: one fold has too few rows of a small class for a score of its own.
        outputs = torch.cat(
            [
                _fitted(kind, features[0][rest], train[rest], metric, penalty)(features[0][part])
                for part, rest in ((p, np.setdiff1d(np.arange(len(folds)), p)) for p in parts)
            ]
        )
        tuned = kind.tuned(truth, outputs, metric)
        found.append((tuned.scores(truth, outputs)[metric], penalty, tuned))
    _, penalty, tuned = max(found, key=lambda one: one[0])
    model = _fitted(kind, features[0], train, metric, penalty)
    scores, intervals = {}, {}
    for name, examples, given in zip(
        ("dev", "test"), (task.dev, task.test), features[1:], strict=True
    ):
        if examples:
            labels, outputs = _labels(task, examples), model(given)
            scores[name] = tuned.scores(labels, outputs)[metric]
            intervals[name] = intervals_of(tuned, labels, outputs)[metric]
    return LinearResult(Scores(dev=scores["dev"], test=scores.get("test")), penalty, intervals)


def _labels(task: LabelledTask, examples: Sequence[Example]) -> Tensor:
    rows = task.task_type.encode([e.label for e in examples], lambda: (), task.name).rows
    assert rows is not None  # tasks that label words have no linear model
    return rows


def _folds(strata: Sequence[str]) -> NDArray[np.int64]:
    """The fold of each row; every fold has its share of each stratum.

    Strata may have fewer rows than folds, which scikit-learn would warn about or refuse.
    """
    shuffled = np.random.default_rng(0).permutation(len(strata))
    folds = np.empty(len(strata), dtype=np.int64)
    folds[sorted(shuffled, key=lambda row: strata[row])] = np.arange(len(strata)) % FOLDS
    return folds


def _fitted(kind: TaskType, features: Any, labels: Tensor, metric: Metric, penalty: float) -> Model:
    """The linear model of a kind of task, fitted to features ``[N, F]`` and labels."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = kind.linear_model(labels, metric, penalty)
    if not hasattr(features, "tocsr"):
        # Features of an encoder differ widely in scale; sparse ones are scaled already.
        model = make_pipeline(StandardScaler(), model)
    with warnings.catch_warnings():
        # With almost no penalty it may not converge; its score still decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # It warns about a class that all texts or none have, and predicts the same for all texts.
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        warnings.filterwarnings("ignore", "Label not .* is present in all training examples")
        model.fit(features, labels.numpy())
    return partial(kind.linear_outputs, model)
