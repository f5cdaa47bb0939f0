"""The threshold for a wanted accuracy, on made-up certainties."""

import numpy as np
import pytest
from aang.task_types.single_label import SingleLabel
from aang_plugin_best.answering import answer_at, answered, threshold_of
from aang_plugin_best.rows import Rows

from aang_core import Example

N = 400


@pytest.fixture
def rows() -> Rows:
    labels = np.arange(N) % 2
    examples = tuple(Example(f"text {i}", label="ab"[k]) for i, k in enumerate(labels))
    return Rows(
        examples, ("",) * N, np.arange(N), np.arange(N) // 2 % 5, SingleLabel(("a", "b")), 5
    )


def probabilities(rows: Rows, sure: np.ndarray, right: np.ndarray) -> np.ndarray:
    predicted = np.where(right, rows.truth, 1 - rows.truth)
    found = np.empty((N, 2))
    found[np.arange(N), predicted], found[np.arange(N), 1 - predicted] = sure, 1 - sure
    return found


def test_it_answers_as_many_as_the_accuracy_allows() -> None:
    """Ten wrong ones of a hundred are at the low end, so accuracy 0.95 takes the upper 94."""
    sure = np.linspace(0.99, 0.5, 100)
    right = np.arange(100) < 90
    threshold = threshold_of(sure, right, 0.95)
    assert threshold is not None
    chosen = sure >= threshold
    assert (chosen.sum(), right[chosen].mean()) == (94, 90 / 94)
    assert threshold_of(sure, right, 0.9) == 0.0


def test_few_right_answers_prove_nothing() -> None:
    """Eighteen of eighteen are right by chance too often to promise one wrong one in twenty."""
    sure = np.linspace(0.99, 0.5, 100)
    assert threshold_of(sure, np.arange(100) < 18, 0.95) is None
    assert threshold_of(sure, np.arange(100) < 19, 0.95) is not None
    assert threshold_of(sure, np.arange(100) % 2 == 0, 0.95) is None
    assert threshold_of(sure[:10], np.ones(10, dtype=bool), 0.9) == 0.0


def test_equal_probabilities_are_answered_together() -> None:
    sure = np.repeat([0.9, 0.6], 50)
    right = np.concatenate([np.ones(50, dtype=bool), np.arange(50) < 40])
    assert threshold_of(sure, right, 0.95) == 0.9


def test_the_check_is_on_rows_that_did_not_choose(rows: Rows) -> None:
    """In one fold certainty means nothing, and only the check shows it."""
    generator = np.random.default_rng(0)
    sure = generator.uniform(0.5, 1.0, N)
    right = generator.random(N) < sure
    right[rows.folds == 0] = generator.random((rows.folds == 0).sum()) < 0.5
    found = answer_at(rows, probabilities(rows, sure, right), 0.85)
    chosen = sure >= found["threshold"]
    assert right[chosen].mean() >= 0.85
    assert found["answered"] == chosen.mean()
    assert found["checked"]["accuracy"] < 0.85


def test_accuracy_by_share(rows: Rows) -> None:
    sure = np.linspace(1.0, 0.5, N)
    points = answered(rows, probabilities(rows, sure, np.arange(N) < 300))
    assert len(points) == 20
    assert points[-1] == {"answered": 1.0, "accuracy": 0.75, "threshold": 0.5}
    assert points[14]["accuracy"] == 1.0
