"""A draw of training rows: by class, at least one each, the same for the same seed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aang_core import ConfigError, Example
from tests.support.data import LabelledTask, class_shares, draw_train


def task(**sizes: int) -> LabelledTask:
    """So many rows of each class, the classes mixed."""
    pairs = [(i, label) for label, size in sizes.items() for i in range(size)]
    examples = tuple(Example(f"{label} {i}", label=label) for i, label in sorted(pairs))
    return LabelledTask("made", examples, examples[:1], (), tuple(sorted(sizes)))


def test_rows_are_drawn_by_class_and_stay_in_order() -> None:
    whole = task(a=60, b=30, c=10)
    drawn, draw = draw_train(whole, 20, 0)
    assert Counter(e.label for e in drawn.train) == {"a": 12, "b": 6, "c": 2}
    assert list(draw.rows) == sorted(set(draw.rows))
    assert drawn.train == tuple(whole.train[i] for i in draw.rows)
    assert (len(draw.rows), draw.of) == (20, 100)
    assert sorted(map(str, (*drawn.train, *drawn.rest))) == sorted(map(str, whole.train))
    assert (drawn.dev, drawn.test, drawn.labels) == (whole.dev, whole.test, whole.labels)


def test_the_seed_makes_the_draw() -> None:
    whole = task(a=60, b=30, c=10)
    first, again, other = (draw_train(whole, 20, seed)[1] for seed in (3, 3, 4))
    assert first == again
    assert first.rows != other.rows
    assert first.digest != other.digest
    changed = LabelledTask(
        "made", (Example("new", label="a"), *whole.train[1:]), (), (), whole.labels
    )
    row_0 = next(s for s in range(50) if 0 in draw_train(whole, 20, s)[1].rows)
    assert draw_train(changed, 20, row_0)[1].digest != draw_train(whole, 20, row_0)[1].digest


def test_a_rare_class_has_a_row() -> None:
    drawn, _ = draw_train(task(a=500, b=1), 5, 0)
    assert Counter(e.label for e in drawn.train) == {"a": 4, "b": 1}


def test_all_rows_can_be_drawn() -> None:
    whole = task(a=3, b=2)
    drawn, draw = draw_train(whole, 5, 0)
    assert drawn.train == whole.train
    assert drawn.rest == ()
    assert draw.rows == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (6, "--train-rows 6: made has 5 training rows; give at most that"),
        (1, "--train-rows 1: made has 2 classes, and each takes at least one row; give 2 or more"),
    ],
)
def test_what_cannot_be_drawn(size: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        draw_train(task(a=3, b=2), size, 0)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data())
def test_shares_are_near_proportional(sizes: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(len(sizes), sum(sizes)))
    shares = class_shares({str(i): size for i, size in enumerate(sizes)}, wanted)
    assert sum(shares.values()) == wanted
    for i, size in enumerate(sizes):
        exact = size * wanted / sum(sizes)
        assert 1 <= shares[str(i)] <= size
        assert shares[str(i)] <= max(1, exact + 1)
