"""The data ``task`` and ``end-task-rows``: the end task's own text (AANG, section 3, stage 1)."""

from collections.abc import Sequence

from aang_core import Data, DataContext, DataError, Example


class TaskData(Data):
    """The end task's training examples with their labels, in file order.

    Dev and test examples are never included: an objective that had seen their text would inflate
    the dev score, and distort every decision based on it.
    """

    of_end_task = True

    def examples(self, context: DataContext) -> Sequence[Example]:
        """``context.train``, unchanged.

        Raises:
            DataError: there are no training examples.
        """
        if not context.train:
            raise DataError(
                "The end task has no training examples for the data 'task'. Name them with --train."
            )
        return context.train


class EndTaskRows(Data):
    """The same examples, but in every step those that the end task trains on in that step.

    An objective on them reads the encoder's output for the end task, so it needs no forward pass of
    its own; a step that measures signals has one more backward pass for it.
    """

    of_step = True

    def examples(self, context: DataContext) -> Sequence[Example]:
        """``context.train``, unchanged.

        Raises:
            DataError: there are no training examples.
        """
        return TaskData().examples(context)
