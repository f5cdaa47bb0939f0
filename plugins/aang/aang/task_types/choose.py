"""Chooses the kind of end task: by name, from the labels of the data, or from a saved model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aang.task_types.cells import mostly_fractions, refuse_alike
from aang.task_types.written_lists import list_of, plain
from aang_core.errors import DataError, ModelError, PluginError
from aang_core.objectives.stages.data import ReadReport
from aang_core.plugins import load_plugins
from aang_core.plugins.registry import ONE_CLASS, EndTaskTraits, Registry

if TYPE_CHECKING:
    from aang.task_types.task_type import LabelColumn, TaskType

SUPPLIER = "aang-plugin-task-types"
"""The plug-in that supplies the kinds whose labels are lists or numbers."""


def task_type_named(name: str, registry: Registry | None = None) -> "type[TaskType]":
    """The kind of end task that is registered under a name.

    Args:
        name: the value of ``--task-type``.
        registry: everything that plug-ins have registered; None for those that are installed.

    Raises:
        UnknownNameError: it is not registered; the message says which plug-ins are not loaded.
    """
    kind: Any = (registry or load_plugins().registry).task_types.find(name).load()
    return kind  # type: ignore[no-any-return]


def traits_of(name: str | None, registry: Registry) -> EndTaskTraits:
    """What a kind of end task adds to the legality of objectives; None for one class a text."""
    if name in (None, ONE_CLASS.task_type):
        return ONE_CLASS
    kind = task_type_named(name, registry)
    return EndTaskTraits(kind.name, kind.waives)


def choose_task_type(
    name: str | None,
    column: "LabelColumn",
    report: ReadReport,
    label_names: Sequence[str] = (),
    registry: Registry | None = None,
) -> "TaskType":
    """The kind of end task, not fitted yet.

    Args:
        name: the kind that the user asks for; None to choose it from the labels.
        column: the labels of train.
        report: where to note the choice, if it is not a single-label task, and how labels are read.
        label_names: the names of the classes, for labels that are a zero or one for each class.
        registry: everything that plug-ins have registered; None for those that are installed.

    Raises:
        AangError: the kind is unknown or not installed.
        DataError: two different texts would be the name of one class, or ``label_names`` does not
            fit the labels.
    """
    registry = registry or load_plugins().registry
    kind = (
        _recognised(column, report, registry) if name is None else task_type_named(name, registry)
    )
    if column.typed and kind.names_classes:
        names = dict.fromkeys(_texts_in(column.labels))
        refuse_alike(names, f"{column.source}: column {column.name!r}", spaces=False)
    return kind.of_column(column, label_names, report)


def _recognised(column: "LabelColumn", report: ReadReport, registry: Registry) -> "type[TaskType]":
    """The first kind that recognises the labels, in the order of registration."""
    for kind in _loaded(registry, report):
        if holds := kind.recognises(column, report):
            report.note(
                f"task type {kind.name}: column {column.name!r} holds {holds}; --task-type names "
                "another"
            )
            return kind
    if reason := registry.absent().get(SUPPLIER):
        _refuse_other_kinds(column, reason)
    return task_type_named(ONE_CLASS.task_type, registry)


def _loaded(registry: Registry, report: ReadReport) -> "Iterator[type[TaskType]]":
    """The kinds in the order of registration; one that cannot be imported is skipped and noted."""
    for entry in registry.task_types:
        try:
            kind: Any = entry.load()
        except PluginError as error:
            report.note(str(error))
        else:
            yield kind


def _refuse_other_kinds(column: "LabelColumn", reason: str) -> None:
    """Raise DataError for labels that are unlikely to be names of classes; no other kind is loaded.

    Args:
        column: the labels of train.
        reason: why the plug-in of the other kinds is not loaded.
    """
    labels = column.filled
    if any(list_of(label) is not None for label in labels):
        what = "lists"
    elif mostly_fractions(labels) and not column.declares_names:
        what = "numbers that are not whole"
    else:
        return
    raise DataError(
        f"{column.source}: column {column.name!r} holds {what}. {SUPPLIER} reads "
        f"such labels, and it is {reason}; --task-type {ONE_CLASS.task_type} reads them as names "
        "of classes"
    )


def _texts_in(labels: Iterable[object]) -> Iterator[str]:
    """The texts among labels and in lists of them."""
    for label in labels:
        parts = list_of(label)
        found = [plain(label)] if parts is None else parts
        yield from (part for part in found if isinstance(part, str))


def labels_of(config: Any) -> tuple[str, ...]:
    """The names of the outputs of a transformers model, in order."""
    names = {int(i): str(name) for i, name in (config.id2label or {}).items()}
    return tuple(names[i] for i in sorted(names))


def task_type_of_model(config: Any, registry: Registry | None = None) -> "TaskType":
    """The kind of end task that a transformers model was trained for.

    Args:
        config: the model's configuration.
        registry: everything that plug-ins have registered; None for those that are installed.

    Raises:
        ModelError: no kind that is loaded reads such a model.
    """
    registry = registry or load_plugins().registry
    labels = labels_of(config)
    for kind in _loaded(registry, ReadReport()):
        if found := kind.of_model(config, labels):
            return found
    reason = registry.absent().get(SUPPLIER)
    absent = f"; {SUPPLIER}, which has others, is {reason}" if reason else ""
    raise ModelError(
        f"no plug-in that is loaded knows the model's kind of task (architectures "
        f"{config.architectures}, problem_type {config.problem_type}, {len(labels)} outputs)"
        f"{absent}"
    )
