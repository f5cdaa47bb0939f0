"""Classes that dev, test or other labelled data has and the training data lacks.

With few labels this is usual. Such rows stay: without them the score would be that of easier data.
"""

from collections.abc import Sequence
from dataclasses import replace

from aang.corpora.labelled import LabelledRows
from aang.task_types.cells import listed, note_look_alikes
from aang.task_types.task_type import TaskType
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example, ReadReport


def know_unseen(
    task_type: TaskType,
    parts: Sequence[tuple[str, LabelledRows]],
    report: ReadReport,
    option: str,
    lacking: str = "train lacks",
) -> TaskType:
    """The kind of task that also knows classes which only these parts have.

    Args:
        task_type: the kind of task, fitted to its training data.
        parts: the rows to score, and what messages call them.
        report: where to note how many rows have such a class, and which.
        option: the option that names the column of the label.
        lacking: what messages say of such a class.

    Raises:
        DataError: a part has classes, but none that can be predicted.
    """
    known, unseen = set(task_type.labels), set[str]()
    for name, rows in parts:
        named = [set(task_type.names(e.label)) for e in rows.examples if e.label is not None]
        every = set().union(*named)
        if every and not every & known:
            raise DataError(
                f"{rows.source}: no row has a class that can be predicted. The classes are "
                f"{listed(task_type.labels)}; here they are {listed(sorted(every))}. Does {option} "
                "name the right column?"
            )
        if found := sorted(every - known):
            count = sum(not classes <= known for classes in named)
            rows_of = f"{count} row{'' if count == 1 else 's'} of {name}"
            # Of a text with several classes or tags, only these are wrong.
            wrong = "missed" if task_type.several_classes else "wrong"
            loss = "; the loss on dev leaves them out" if name == "dev" else ""
            report.note(
                f"{rows_of} with a class that {lacking} ({listed(found, 5)}), counted as "
                f"{wrong}{loss}"
            )
            note_look_alikes(rows.source, [*task_type.labels, *found], report)
        unseen.update(found)
    return replace(task_type, unseen=tuple(sorted(unseen))) if unseen else task_type


def can_be_learned(example: Example, task_type: TaskType) -> bool:
    """Whether an example has a class of train, or none at all."""
    names = () if example.label is None else task_type.names(example.label)
    return not names or any(name in task_type.labels for name in names)
