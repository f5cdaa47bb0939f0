"""Parts of the rows, and what they say of more labels."""

import numpy as np
import pytest
from aang.task_types.single_label import SingleLabel
from aang_plugin_best.learning_curve import drawn, gain_of
from aang_plugin_best.next_steps import doubtful
from aang_plugin_best.quick import Calibrated
from aang_plugin_best.rows import Rows
from aang_plugin_best.together import probabilities_of
from sklearn.linear_model import LogisticRegression

from aang_core import Example

N = 200


@pytest.fixture
def rows() -> Rows:
    """Two hundred rows, a quarter of them of the second class, four of the third."""
    truth = np.where(np.arange(N) % 4 == 0, 1, 0)
    truth[[3, 61, 102, 153]] = 2
    examples = tuple(Example(f"text {i}", label="abc"[k]) for i, k in enumerate(truth))
    kind = SingleLabel(("a", "b", "c"))
    return Rows(examples, ("",) * N, np.arange(N), np.arange(N) // 3 % 5, kind, 5)


def test_parts_of_the_rows_grow(rows: Rows) -> None:
    """A larger part has all rows of a smaller one, a share of each class, and no rare class less
    than three times.
    """
    parts = [drawn(rows, 2, share) for share in (0.25, 0.5, 0.75)]
    outside = rows.folds != 2
    for smaller, larger in zip(parts, [*parts[1:], outside], strict=True):
        assert not (smaller & ~larger).any()
    for share, part in zip((0.25, 0.5, 0.75), parts, strict=True):
        for number in (0, 1):
            count = ((rows.truth == number) & outside).sum()
            assert abs((rows.truth[part] == number).sum() - share * count) <= 1
        assert (rows.truth[part] == 2).sum() == 3


def test_scattered_points_promise_little() -> None:
    """Points on a line say what comes next; scattered ones only that it is open."""
    trained = np.array([80, 160, 240, 320])
    line = 0.1 * np.log(trained)
    exact = gain_of(trained, np.tile(line, (1000, 1)), 400)
    assert exact == pytest.approx(0.1 * np.log(500 / 400))
    off = np.array([0.02, -0.02, -0.02, 0.02])
    scattered = gain_of(trained, np.tile(line + off, (1000, 1)), 400)
    low, high = np.quantile(scattered, (0.025, 0.975))
    assert low < 0 < exact[0] < high


def test_labels_that_fit_are_not_doubted_and_a_wrong_one_is(rows: Rows) -> None:
    logits = np.zeros((N, 3), dtype=np.float32)
    logits[np.arange(N), rows.truth] = 5
    assert doubtful(rows, probabilities_of(logits)) == []
    logits[40], logits[41, 2] = (5, 0, 0), 3
    (found,) = doubtful(rows, probabilities_of(logits))
    assert (found["text"], found["label"], found["suggested"]) == ("text 40", "b", "a")


def test_pieces_of_a_text_are_not_held_out_beside_each_other() -> None:
    """A model that knows other pieces is surer of a piece than it will be of a new text."""
    generator = np.random.default_rng(0)
    texts = np.repeat(np.arange(30), 6)
    labels = generator.integers(2, size=30)[texts]
    features = generator.normal(size=(30, 20))[texts] + 0.05 * generator.normal(size=(180, 20))
    surest = []
    for groups in (None, np.arange(180), texts):
        model = Calibrated(LogisticRegression(), {"C": [1.0, 100.0]}, scoring="f1_macro")
        model.fit(features, labels, groups=groups)
        surest.append(model.predict_proba(generator.normal(size=(500, 20))).max(axis=1).mean())
    assert surest[0] > 0.8
    assert surest[0] == pytest.approx(surest[1], abs=0.05)
    assert surest[2] < 0.7
