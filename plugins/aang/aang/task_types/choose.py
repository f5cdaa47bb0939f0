"""Chooses the kind of end task: by name, from the labels of the data, or from a saved model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aang.task_types.cells import is_null, number, refuse_alike, spells_missing, spoils_numbers
from aang.task_types.class_names import listed
from aang.task_types.multi_label import SEPARATORS, MultiLabel, places_in, split_text
from aang.task_types.names import TaskTypeName
from aang.task_types.regression import Regression
from aang.task_types.single_label import ONE_CLASS, SingleLabel
from aang.task_types.task_type import TaskType
from aang.task_types.token_labels import TokenLabels
from aang.task_types.words import tokens_in
from aang.task_types.written_lists import list_in, looks_like_list
from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport


@dataclass(frozen=True)
class LabelColumn:
    """The labels of all training examples, as their table has them.

    Attributes:
        name: the column's name.
        labels: its cells.
        texts: the cells of the text beside them.
        typed: whether the table tells texts from numbers; a CSV file does not.
        source: what messages call the table.
    """

    name: str
    labels: Sequence[object]
    texts: Sequence[object]
    typed: bool = True
    source: str = "train"

    @property
    def declares_names(self) -> bool:
        """Whether every label is text in a table that could have held a number instead."""
        return self.typed and all(isinstance(label, str) or is_null(label) for label in self.labels)


def _multi_label(column: LabelColumn) -> MultiLabel:
    """Lists, or text with the first separator that occurs in it.

    If each of them has the same number of zeros and ones, every place is a class.
    """
    labels = [label for label in map(_plain, column.labels) if not is_null(label)]
    texts = [label for label in labels if isinstance(label, str)]
    separator = None
    if len(texts) == len(labels) and not _are_lists([text for text in texts if text.strip()]):
        found = (mark for mark in SEPARATORS if any(mark in text for text in texts))
        separator = next(found, SEPARATORS[0])
        places = places_in((split_text(text, separator) for text in texts), of_text=True)
    else:
        places = places_in(map(_list_of, labels))
    if places is None:
        return MultiLabel(separator=separator)
    return MultiLabel(tuple(map(str, range(places))), separator, by_place=True)


NAMED: Mapping[TaskTypeName, Callable[[LabelColumn], TaskType]] = {
    "single-label": lambda column: ONE_CLASS,
    "multi-label": _multi_label,
    "regression": lambda column: Regression(),
    "token-labels": lambda column: TokenLabels(),
}


def choose_task_type(
    name: TaskTypeName | None,
    column: LabelColumn,
    report: ReadReport,
    label_names: Sequence[str] = (),
) -> TaskType:
    """The kind of end task, not fitted yet.

    Args:
        name: the kind that the user asks for; None to choose it from the labels.
        column: the labels of train.
        report: where to note the choice, if it is not a single-label task, and how labels are read.
        label_names: the names of the classes where labels are zeros and ones by their place.

    Raises:
        DataError: two different texts would be the name of one class, or ``label_names`` does not
            fit the labels.
    """
    chosen, why = (name, "") if name is not None else _seen(column, report)
    if why:
        report.note(
            f"task type {chosen}: column {column.name!r} holds {why}; --task-type names another"
        )
    if column.typed and chosen != "regression":
        names = dict.fromkeys(_texts_in(column.labels))
        refuse_alike(names, f"{column.source}: column {column.name!r}", spaces=False)
    kind = NAMED[chosen](column)
    if isinstance(kind, MultiLabel) and kind.by_place:
        return _with_names(kind, column, label_names, report)
    if label_names:
        raise DataError(
            f"{column.source}: --label-names names the places of zeros and ones, and the labels "
            f"in column {column.name!r} are other values. Leave it out."
        )
    return kind


def _with_names(
    kind: MultiLabel, column: LabelColumn, names: Sequence[str], report: ReadReport
) -> MultiLabel:
    """A kind whose labels are zeros and ones, with the names that its places were given."""
    count = len(kind.labels)
    if names and len(names) != count:
        raise DataError(
            f"{column.source}: --label-names has {len(names)} names, and the labels in column "
            f"{column.name!r} have {count} places. Give one name for each place."
        )
    named = replace(kind, labels=tuple(names) or kind.labels)
    other = "" if names else "; --label-names names them"
    report.note(
        f"column {column.name!r}: each label is {count} zeros and ones, which mark by their place "
        f"the classes {listed(named.labels, 5)}{other}"
    )
    return named


def _seen(column: LabelColumn, report: ReadReport) -> tuple[TaskTypeName, str]:
    """The kind that the labels look like, and what they look like."""
    labels = [_plain(label) for label in column.labels]
    written = [label for label in labels if isinstance(label, str) and label.strip()]
    lists = [label for label in map(_list_of, labels) if label is not None]
    if lists or (written and _are_lists(written)):
        texts = [
            text
            for text, label in zip(column.texts, labels, strict=True)
            if _list_of(label) is not None
        ]
        if texts and all(_is_tokens(text) for text in texts):
            return "token-labels", "a list of tags for a list of tokens"
        if any(isinstance(part, dict | list) for label in lists for part in label):
            return "token-labels", "lists of spans"
        as_text = "" if any(isinstance(label, list) for label in labels) else ", written as text"
        return "multi-label", f"lists of classes{as_text}"
    return _numbers_or_names(column, [label for label in labels if not is_null(label)], report)


def _numbers_or_names(
    column: LabelColumn, labels: Sequence[object], report: ReadReport
) -> tuple[TaskTypeName, str]:
    """Regression if most labels are numbers, not all of them whole.

    What is missing among them, or written differently, is refused when it is read, because one
    such cell must not turn numbers into names of classes.
    """
    found = [one for one in map(number, labels) if one is not None]
    others = [label for label in labels if number(label) is None]
    spoilt = all(spoils_numbers(label) for label in others)
    if not any(one % 1 for one in found) or not (spoilt or len(found) > len(others)):
        written = [x for x in others if isinstance(x, str) and not spells_missing(x)]
        if spoilt and written:
            report.note(
                f"column {column.name!r} holds numbers such as {written[0]!r}, which are read as "
                "names of classes; write them as 2.5, without commas, spaces or percent signs, for "
                "regression"
            )
        return "single-label", ""
    if column.declares_names:
        if spoilt:
            report.note(
                f"column {column.name!r} holds numbers written as text, which are names of "
                "classes; --task-type regression reads them as numbers"
            )
        return "single-label", ""
    return "regression", "numbers that are not whole"


def _are_lists(texts: Sequence[str]) -> bool:
    """Whether cells of text hold lists, or all look as if they did."""
    return any(list_in(text) is not None for text in texts) or (
        bool(texts) and all(looks_like_list(text) for text in texts)
    )


def _list_of(label: object) -> list[Any] | None:
    """The list that a label is or spells."""
    if isinstance(label, str):
        return list_in(label)
    return label if isinstance(label, list) else None


def _is_tokens(text: object) -> bool:
    text = _plain(text)
    return isinstance(text, list) or (isinstance(text, str) and tokens_in(text) is not None)


def _texts_in(labels: Iterable[object]) -> Iterator[str]:
    """The texts among labels and in lists of them."""
    for label in map(_plain, labels):
        parts = _list_of(label)
        yield from (part for part in ([label] if parts is None else parts) if isinstance(part, str))


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
        return MultiLabel(
            labels,
            separator,
            float(getattr(config, "threshold", 0.5)),
            by_place=bool(getattr(config, "labels_by_place", False)),
        )
    if config.problem_type == "regression" or len(labels) == 1:
        return Regression()
    return SingleLabel(labels)
