"""Several labelled data sets in files: one is the end task and the others help."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aang.corpora.columns import Columns
from aang.corpora.labelled import LabelledRows, read_rows
from aang.corpora.labelled_task import HeldOutTexts
from aang.task_types.single_label import ONE_CLASS
from aang_core.errors import DataError
from aang_core.objectives.stages.data import DataContext, Example, ReadReport


@dataclass(frozen=True)
class TaskFiles:
    """A labelled data set of the user: its files and its columns.

    Attributes:
        name: the task's name.
        train: its training file.
        dev: its dev file, used only if this is the end task.
        test: its test file, used only if this is the end task.
        columns: names of its columns.
        skip_bad_rows: whether rows that lack a text or label are left out.
    """

    name: str
    train: Path
    dev: Path | None
    test: Path | None
    columns: Columns
    skip_bad_rows: bool = False


class LabelledFile:
    """The data of an auxiliary task: texts with their own labels, from one file.

    Args:
        files: the task; only its training file is read.
        text: column of the text.
        text_pair: column of the second text; None for single texts.
        label: column of the label.
    """

    def __init__(
        self, files: TaskFiles, *, text: str, text_pair: str | None = None, label: str
    ) -> None:
        self._files = files
        self._columns = Columns(text, text_pair, label, task=files.name)
        self._held_out: HeldOutTexts | None = None

    def leave_out(self, held_out: HeldOutTexts) -> None:
        """Leave out texts of the end task's dev and test, whose labels may tell those there."""
        self._held_out = held_out

    def examples(self, context: DataContext) -> Iterable[Example]:
        """The examples in file order.

        Raises:
            DataError: the file cannot be used, all its examples are left out, or those that are not
                have one label.
        """
        skip, report = self._files.skip_bad_rows, context.report
        rows = read_rows(self._files.train, self._columns, report, skip_bad_rows=skip)
        if not rows.examples:
            raise DataError(f"{rows.source}: it contains no examples.")
        rows = rows.part(self._usable(rows, report))
        if not rows.examples:
            raise DataError(
                f"{rows.source}: every text is also in dev or test of the end task. Nothing may "
                "train on those; give other texts."
            )
        ONE_CLASS.fitted(rows.labels, rows.source, self._columns.option("label"), report)
        return rows.examples

    def _usable(self, rows: LabelledRows, report: ReadReport) -> list[int]:
        """The indices of the rows that are not held out."""
        usable = []
        for index, example in enumerate(rows.examples):
            if part := self._held_out and self._held_out.part_of(example):
                event = (
                    f"text of {self._files.name} that is also in the end task's {part}, left out"
                )
                report.add(event, rows.places[index])
            else:
                usable.append(index)
        return usable
