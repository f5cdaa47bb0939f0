"""The data ``task`` is the training data, and nothing else."""

import pytest
from aang_plugin_task.data import TaskData

from aang_core import DataContext, DataError, Example


def test_the_training_examples_as_they_are() -> None:
    train = (Example("b", label="y"), Example("a", "pair", "x"))
    context = DataContext(train=train)
    assert list(TaskData().examples(context)) == list(train)
    # A second objective reads the same source again.
    assert list(TaskData().examples(context)) == list(train)


def test_no_training_examples() -> None:
    with pytest.raises(DataError, match="--train"):
        TaskData().examples(DataContext(train=()))
