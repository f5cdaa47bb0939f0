"""Scores of predictions."""

import pytest

from tests.support.training import per_class


@pytest.mark.parametrize("predicted", [[1, 1], [3, 2]])
def test_examples_are_counted_in_whole_numbers(predicted: list[int]) -> None:
    """Also where no prediction is right, of which scikit-learn makes floating-point counts."""
    counts = [row["examples"] for row in per_class([1, 1], predicted, 4)]
    assert counts == [0, 2, 0, 0]
    assert all(type(count) is int for count in counts)
