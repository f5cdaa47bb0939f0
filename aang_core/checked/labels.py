"""What the label of a plug-in's example may be."""

from collections.abc import Callable, Mapping
from typing import Any

from aang.task_types.cells import number
from aang.task_types.names import TaskTypeName

from aang_core.objectives.stages import TaggedWord


def _tuple_of(kind: type) -> Callable[[Any], bool]:
    return lambda label: isinstance(label, tuple) and all(isinstance(x, kind) for x in label)


def _is_number(label: Any) -> bool:
    return isinstance(label, int | float) and number(label) is not None


_OF_KIND: Mapping[TaskTypeName, tuple[str, Callable[[Any], bool]]] = {
    "single-label": ("a string", lambda label: isinstance(label, str)),
    "multi-label": ("a tuple of strings", _tuple_of(str)),
    "regression": ("a finite number", _is_number),
    "token-labels": ("a tuple of TaggedWord", _tuple_of(TaggedWord)),
}


def expected_of(label: Any, kind: TaskTypeName | None) -> str | None:
    """What a label should be; None if it is that.

    Args:
        label: the label of an example, which may always be None.
        kind: the kind of task that it is a label of; None if it may be of any kind.

    Examples:
        >>> expected_of(("red", "green"), "multi-label")
        >>> expected_of("red", "multi-label")
        'a tuple of strings or None'
    """
    kinds = list(_OF_KIND.values()) if kind is None else [_OF_KIND[kind]]
    if label is None or any(fits(label) for _, fits in kinds):
        return None
    return " or ".join([*(what for what, _ in kinds), "None"])
