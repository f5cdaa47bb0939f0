"""Chooses the kind of end task: by name, from the labels of the data, or from a saved model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aang_core.objectives.stages.data import ReadReport
from aang_core.task_types.cells import is_null, number
from aang_core.task_types.multi_label import SEPARATORS, MultiLabel
from aang_core.task_types.names import TaskTypeName
from aang_core.task_types.regression import Regression
from aang_core.task_types.single_label import ONE_CLASS, SingleLabel
from aang_core.task_types.task_type import TaskType
from aang_core.task_types.token_labels import TokenLabels

Cells = Sequence[tuple[object, object]]
"""The text and the label of every training example, as the table has them."""


def _separated(cells: Cells) -> MultiLabel:
    """Multi-label cells: lists, or text with the first separator that occurs in it."""
    texts = [label for _, label in cells if isinstance(label, str)]
    if len(texts) < sum(not is_null(label) for _, label in cells):
        return MultiLabel()
    found = (mark for mark in SEPARATORS if any(mark in text for text in texts))
    return MultiLabel(separator=next(found, SEPARATORS[0]))


NAMED: Mapping[TaskTypeName, Callable[[Cells], TaskType]] = {
    "single-label": lambda cells: ONE_CLASS,
    "multi-label": _separated,
    "regression": lambda cells: Regression(),
    "token-labels": lambda cells: TokenLabels(),
}


def choose_task_type(
    name: TaskTypeName | None, cells: Cells, column: str, report: ReadReport
) -> TaskType:
    """The kind of end task, not fitted yet.

    Args:
        name: the kind that the user asks for; None to choose it from the labels.
        cells: text and label of every training example.
        column: the column of the label, for the report.
        report: where to note the choice, if it is not a single-label task.
    """
    chosen, why = (name, "") if name is not None else _seen(cells)
    if why:
        report.note(f"task type {chosen}: column {column!r} holds {why}; --task-type names another")
    return NAMED[chosen](cells)


def _seen(cells: Cells) -> tuple[TaskTypeName, str]:
    """The kind that the labels look like, and what they look like."""
    labels = [_plain(label) for _, label in cells]
    lists = [label for label in labels if isinstance(label, list)]
    if lists:
        texts = [_plain(text) for text, label in cells if isinstance(_plain(label), list)]
        if all(isinstance(text, list) for text in texts):
            return "token-labels", "a list of tags for a list of tokens"
        if any(isinstance(part, dict | list) for label in lists for part in label):
            return "token-labels", "lists of spans"
        return "multi-label", "lists of classes"
    numbers = [number(label) for label in labels if not is_null(label)]
    if None not in numbers and any(one is not None and one % 1 for one in numbers):
        return "regression", "numbers that are not whole"
    return "single-label", ""


def _plain(value: Any) -> Any:
    """Arrays, such as those of pandas and datasets, and tuples as lists."""
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def task_type_of_model(config: Any) -> TaskType:
    """The kind of end task that a transformers model was trained for.

    Args:
        config: the model's configuration.
    """
    names = {int(i): str(name) for i, name in (config.id2label or {}).items()}
    labels = tuple(names[i] for i in sorted(names))
    if "ForTokenClassification" in " ".join(config.architectures or ()):
        return TokenLabels(labels)
    if config.problem_type == "multi_label_classification":
        separator = getattr(config, "label_separator", None)
        return MultiLabel(labels, separator, float(getattr(config, "threshold", 0.5)))
    if config.problem_type == "regression" or len(labels) == 1:
        return Regression()
    return SingleLabel(labels)
