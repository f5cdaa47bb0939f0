"""The table of steps that several processes share."""

import pytest

from benchmarks.processes import Row, table

pytestmark = pytest.mark.release


def column(rows: list[Row]) -> list[str]:
    """The cells of the column that compares with one process."""
    return [line.split("|")[3].strip() for line in table(rows)]


def test_steps_are_compared_with_that_of_one_process() -> None:
    """Wherever it stands, and not at all if it was not measured."""
    one, two, three = Row(1, 4.0, 4, 0.1, 1), Row(2, 3.0, 4, 0.1, 0.5), Row(3, 2.0, 4, 0.1, 0.4)
    assert column([one, two, three]) == ["of one", "---", "1.00", "0.75", "0.50"]
    assert column([two, one]) == ["of one", "---", "0.75", "1.00"]
    assert column([two, three]) == ["of one", "---", "–", "–"]
