"""Traits that only one side knows: probably misspelled."""

import difflib
from collections.abc import Iterable

from aang_core.plugins.end_task_traits import READS_END_TASK_HEAD
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive

_NEAR = 0.8
"""Similarity from which a trait that nobody requires is taken for a misspelling of another."""

_OF_AUXILIARY_TASKS = frozenset({"text", "labels:own"})
"""What the files of ``--aux-task`` provide, which no plug-in registers."""

_OF_END_TASKS = frozenset(
    {
        *("end-task:single-label", "end-task:multi-label"),
        *("end-task:regression", "end-task:token-labels"),
        READS_END_TASK_HEAD,
    }
)
"""What the kinds of end task provide, and what outputs say of themselves."""


def unprovided_traits(
    primitives: Iterable[Primitive], registered: Iterable[Primitive]
) -> list[str]:
    """A sentence for each trait that one of ``primitives`` requires and nobody provides.

    Args:
        primitives: the primitives in question.
        registered: all primitives.
    """
    provided = _OF_AUXILIARY_TASKS.union(*(primitive.provides for primitive in registered))
    return [
        f"the {primitive.stage} {primitive.key} requires {trait}, which nobody provides; "
        f"{_hint(trait, provided)}"
        for primitive in primitives
        for trait in sorted(primitive.requires - provided - _OF_END_TASKS)
    ]


def misspelled_traits(
    primitives: Iterable[Primitive], registered: Iterable[Primitive]
) -> list[str]:
    """A sentence for each trait that one of ``primitives`` provides and seems to misspell.

    Nobody requires it, no other plug-in provides it, and it is similar to one that others use.

    Args:
        primitives: primitives of one plug-in.
        registered: all primitives.
    """
    primitives, registered = list(primitives), list(registered)
    owners = {primitive.origin for primitive in primitives}
    required = frozenset[str]().union(*(primitive.requires for primitive in registered))
    others = [primitive for primitive in registered if primitive.origin not in owners]
    used = (required | _OF_END_TASKS).union(*(primitive.provides for primitive in others))
    sentences = []
    for primitive in primitives:
        for trait in sorted(primitive.provides - used):
            if near := difflib.get_close_matches(trait, sorted(used), n=1, cutoff=_NEAR):
                sentences.append(
                    f"the {primitive.stage} {primitive.key} provides {trait}, which nobody "
                    f"requires; did you mean {near[0]}?"
                )
    return sentences


def _hint(trait: str, provided: Iterable[str]) -> str:
    # All labels:… look alike, so one trait is offered, not three.
    near = difflib.get_close_matches(trait, sorted(provided), n=1)
    return did_you_mean(trait, near or provided, "the traits that somebody provides are")
