"""The data ``task`` and ``end-task-rows``: the end task's own text (AANG, section 3, stage 1)."""

from collections.abc import Sequence

from aang_core import DataContext, DataError, Example


class TaskData:
    """The end task's training examples with their labels, in file order.

    Dev and test are never among them: an objective that had seen their text would make the dev
    score too good, and with it every decision that is taken on it.
    """

    of_end_task = True

    def examples(self, context: DataContext) -> Sequence[Example]:
        """``context.train``, as it is.

        Raises:
            DataError: there is no training example.
        """
        if not context.train:
            raise DataError(
                "The end task has no training examples for the data 'task'. Name them with --train."
            )
        return context.train


class EndTaskRows:
    """The same examples, but in every step those that the end task trains on in that step.

    An objective on them reads what the encoder makes of them for the end task, so it costs no pass
    through the encoder: a forward pass is shared, and a step that measures signals has one backward
    pass more for it.
    """

    of_step = True

    def examples(self, context: DataContext) -> Sequence[Example]:
        """``context.train``, as it is.

        Raises:
            DataError: there is no training example.
        """
        return TaskData().examples(context)
