"""The linear models behind the controls, for each kind of end task."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from aang_core import Example, ReadReport
from tests.support.data import (
    LabelledTask,
    MultiLabel,
    Regression,
    SingleLabel,
    TaskType,
    tag_labels,
)
from tests.support.runs import MOST_WORK, PENALTIES, controls_of, linear_result, tf_idf
from tests.support.spaces import Label

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)).numpy()
LABELS: dict[str, tuple[TaskType, list[Label]]] = {
    "single-label": (SingleLabel(), ["up" if x[0] > 0 else "down" for x in X]),
    "multi-label": (
        MultiLabel(),
        [tuple(n for n, v in zip("abc", x, strict=True) if v > 0) for x in X],
    ),
    "regression": (Regression(), [float(50 + 9 * x[0] - x[1]) for x in X]),
}


def task_of(unfitted: TaskType, *parts: Sequence[tuple[str, Label]]) -> LabelledTask:
    train, dev, test = (tuple(Example(t, label=label) for t, label in part) for part in parts)
    labels = [example.label for example in train if example.label is not None]
    kind: TaskType = unfitted.fitted(labels, "train", "--label", ReadReport())
    return LabelledTask("made", train, dev, test, kind.labels, of_type=kind)


@pytest.mark.parametrize("name", LABELS)
def test_what_is_linear_is_learned(name: str) -> None:
    unfitted, labels = LABELS[name]
    rows = [("x", label) for label in labels]
    task = task_of(unfitted, rows[:40], rows[40:], rows[40:])
    found = linear_result((X[:40], X[40:], X[40:]), task, task.task_type.metrics[0], (0.01, 100.0))
    assert found.scores.dev > 0.8
    assert found.scores.test == found.scores.dev


def test_the_penalty_is_chosen_on_train() -> None:
    """Other labels of dev change its score and nothing else."""
    labels = ["up" if x[0] + x[1] / 4 > 0.3 else "down" for x in X]
    rows = [("x", label) for label in labels]
    wrong = [("x", "down" if label == "up" else "up") for _, label in rows]
    features = (X[:40], X[40:50], X[50:])
    right = task_of(SingleLabel(), rows[:40], rows[40:50], rows[50:])
    other = task_of(SingleLabel(), rows[:40], wrong[40:50], rows[50:])
    found = linear_result(features, right, "macro-f1", PENALTIES)
    again = linear_result(features, other, "macro-f1", PENALTIES)
    assert again.penalty == found.penalty
    assert again.scores.test == found.scores.test
    assert again.scores.dev != found.scores.dev


def test_a_rare_class_counts_as_much_as_a_frequent_one_in_macro_f1() -> None:
    """Without weights all texts would get the frequent class; accuracy does not want them."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(600, 4)).astype(np.float32)
    rare = features[:, 0] + generator.normal(size=600) / 2 > 1.8
    rows = [("x", "rare" if is_rare else "frequent") for is_rare in rare]
    task = task_of(SingleLabel(), rows[:200], rows[200:], ())
    split = (features[:200], features[200:], None)
    macro = linear_result(split, task, "macro-f1", (1.0,)).scores.dev
    accuracy = linear_result(split, task, "accuracy", (1.0,)).scores.dev
    assert 0.6 < macro < accuracy
    assert accuracy > 0.9


@pytest.mark.parametrize(
    ("unfitted", "labels"),
    [
        (SingleLabel(), ["a", "b"]),
        (SingleLabel(), ["a", "a", "b"]),
        (SingleLabel(), ["a"] * 7 + ["b", "c"]),
        (MultiLabel(), [("a",), ("b",), ()]),
        (Regression(), [1.0, 2.0]),
    ],
)
def test_fewer_rows_of_a_class_than_folds(unfitted: TaskType, labels: list[Label]) -> None:
    rows = [(f"word{i} {label}", label) for i, label in enumerate(labels)]
    task = task_of(unfitted, rows, rows, ())
    parts = tf_idf((task.train, task.dev, task.test))
    found = linear_result(parts, task, task.task_type.metrics[0], PENALTIES)
    assert found.scores.test is None
    assert found.scores.dev >= 0


def test_a_task_that_would_take_minutes_has_none() -> None:
    """Nor has one that labels words."""
    report = ReadReport()
    long = "word " * (MOST_WORK // 5 // 2 // 2 + 1)
    task = task_of(SingleLabel(), [(long, "a"), (long, "b")], [(long, "a")], ())
    assert controls_of(task, "macro-f1", report) == {}
    (note,) = report.lines()
    assert "is left out: 2 training texts of 2500010 characters" in note
    few = task_of(SingleLabel(), [("good", "a"), ("bad", "b")], [("good", "a")], ())
    assert controls_of(few, "macro-f1", report)["tf-idf"].dev == 1.0
    words = LabelledTask("made", few.train, few.dev, (), (), of_type=tag_labels(("B", "O")))
    assert controls_of(words, "accuracy", report) == {}
    assert len(report.lines()) == 1
