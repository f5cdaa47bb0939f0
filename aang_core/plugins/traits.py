"""Traits that a kind of end task adds to objectives, and traits that nobody provides."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive

PREFIX = "end-task:"

READS_END_TASK_HEAD = "end-task-head"
"""The trait of outputs whose head has the shape of the end task's, and reads what that reads."""

_OF_AUXILIARY_TASKS = frozenset({"text", "labels:own"})
"""What the files of ``--aux-task`` provide, which no plug-in registers."""


@dataclass(frozen=True, slots=True)
class EndTaskTraits:
    """Traits that every objective of a run has from its end task.

    Attributes:
        task_type: the kind of end task, such as ``single-label``.
        waived: traits that outputs with the trait ``end-task-head`` do not need to find, because
            this kind's head does not read what they are about.

    Examples:
        >>> from aang_core.plugins.traits import EndTaskTraits
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


def unprovided_traits(
    primitives: Iterable[Primitive], registered: Iterable[Primitive]
) -> list[str]:
    """A sentence for each trait that one of ``primitives`` requires and nobody provides.

    Traits of end tasks are left out: whether a run's has them is said of each objective.

    Args:
        primitives: the primitives in question.
        registered: all primitives.
    """
    provided = _OF_AUXILIARY_TASKS.union(*(primitive.provides for primitive in registered))
    return [
        f"the {primitive.stage} {primitive.key} requires {trait}, which nobody provides; "
        f"{_hint(trait, provided)}"
        for primitive in primitives
        for trait in sorted(primitive.requires - provided)
        if not trait.startswith(PREFIX)
    ]


def _hint(trait: str, provided: Iterable[str]) -> str:
    # All labels:… look alike, so one trait is offered, not three.
    near = difflib.get_close_matches(trait, sorted(provided), n=1)
    return did_you_mean(trait, near or provided, "the traits that somebody provides are")
