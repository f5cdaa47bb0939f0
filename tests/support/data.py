"""Reading, tokenising and splitting data, and the kinds of end task."""

from pathlib import Path
from typing import Any

from aang.assembly.labelled_tasks import LabelledFile, TaskFiles
from aang.corpora import (
    LabelledTask,
    RepeatedTexts,
    dataset_task,
    labelled_task,
    letter_runs,
    text_files,
    token_cache,
)
from aang.corpora.cache import cached_text, chosen_cache_folder, make_folder
from aang.corpora.columns import Columns
from aang.corpora.in_memory import require_one_type, table_in_memory
from aang.corpora.labelled import LabelledRows, read_rows
from aang.corpora.labelled_task import TaskReading
from aang.corpora.places import task_name
from aang.corpora.tables import TableInMemory, read_table, stream_table
from aang.corpora.tokenizer import tokenizer_digest, vocabulary
from aang.corpora.tokens import PaddedRows, TokenRows, tokenize
from aang.corpora.train_draw import class_shares, draw_train
from aang.corpora.unlabelled_texts import UnlabelledTexts
from aang.task_types import NO_LABEL, SingleLabel, TaskType
from aang.task_types.cells import MOST_CLASSES
from aang.task_types.choose import task_type_named, task_type_of_model
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.words import word_places
from aang_plugin_demo.documentation import (
    DEV_SIZE,
    MIN_CHARACTERS,
    PACKAGES,
    TRAIN_SIZE,
    DemoTask,
    DemoTaskUnavailable,
    UnlabelledParagraphs,
    comments,
    load_demo_task,
    strip_package_names,
)
from aang_plugin_prepare.pieces import Cutter, PieceStream, digest, pieces_of
from aang_plugin_task_types.multi_label import MultiLabel
from aang_plugin_task_types.regression import Regression
from aang_plugin_task_types.token_labels import TokenLabels, tag_labels

from aang_core.objectives.stages.data import ReadReport


def load_task(
    train: Path | TableInMemory,
    dev: Path | TableInMemory | None = None,
    test: Path | TableInMemory | None = None,
    *,
    report: ReadReport | None = None,
    **options: Any,
) -> LabelledTask:
    """The end task from files or data in memory; see `TaskReading` and `Columns` for options."""
    given = {"train": train, "dev": dev, "test": test}
    parts = {part: source for part, source in given.items() if source is not None}
    report = ReadReport() if report is None else report
    name = task_name(train) if isinstance(train, Path) else "given"
    return labelled_task.load_task(parts, _reading(options), report, name)


def load_dataset_task(
    name: str, *, report: ReadReport | None = None, **options: Any
) -> LabelledTask:
    """The end task from a data set; options as for `load_task`."""
    return dataset_task.load_dataset_task(
        name, None, _reading(options), ReadReport() if report is None else report
    )


def _reading(options: dict[str, Any]) -> TaskReading:
    columns = {n: options.pop(n) for n in ("text", "text_pair", "label") if n in options}
    return TaskReading(Columns(**columns), **options)
