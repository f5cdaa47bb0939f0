"""What the kind of end task adds to the legality of objectives."""

from dataclasses import dataclass

PREFIX = "end-task:"

READS_END_TASK_HEAD = "end-task-head"
"""The trait of outputs whose head has the shape of the end task's, and reads what that reads."""


@dataclass(frozen=True, slots=True)
class EndTaskTraits:
    """Traits that every objective of a run has from its end task.

    Attributes:
        task_type: the kind of end task, such as ``single-label``.
        waived: traits that outputs with the trait ``end-task-head`` do not need to find, because
            this kind's head does not read what they are about.

    Examples:
        >>> from aang_core.plugins.end_task_traits import EndTaskTraits
        >>> EndTaskTraits("multi-label").provides
        frozenset({'end-task:multi-label'})
    """

    task_type: str
    waived: frozenset[str] = frozenset()

    @property
    def provides(self) -> frozenset[str]:
        """``end-task:`` and the kind."""
        return frozenset({PREFIX + self.task_type})


ONE_CLASS = EndTaskTraits("single-label")
"""Those of an end task with one class a text, which holds where no end task is known yet."""
