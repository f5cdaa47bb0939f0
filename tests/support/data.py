"""Reading, tokenising and splitting data, and the kinds of end task."""

from aang_core.corpora import (
    LabelledTask,
    RepeatedTexts,
    letter_runs,
    memory_limit,
    places,
    text_files,
    token_cache,
)
from aang_core.corpora.cache import chosen_cache_folder, make_folder
from aang_core.corpora.dataset_folder import refuse_files_elsewhere
from aang_core.corpora.dataset_task import load_dataset_task
from aang_core.corpora.demo import (
    DEV_SIZE,
    MIN_CHARACTERS,
    PACKAGES,
    TRAIN_SIZE,
    DemoTask,
    DemoTaskUnavailable,
    load_demo_task,
    strip_package_names,
)
from aang_core.corpora.demo_unlabelled import UnlabelledParagraphs, comments
from aang_core.corpora.in_memory import TableInMemory, table_in_memory
from aang_core.corpora.labelled import Columns, LabelledRows, read_rows
from aang_core.corpora.labelled_task import load_task
from aang_core.corpora.names import task_name
from aang_core.corpora.pieces import Cutter, PieceStream, digest, pieces_of
from aang_core.corpora.tables import read_table, stream_table
from aang_core.corpora.task_files import LabelledFile, TaskFiles
from aang_core.corpora.tokenizer_definition import tokenizer_digest
from aang_core.corpora.tokens import PaddedRows, TokenRows, tokenize, vocabulary
from aang_core.corpora.train_draw import class_shares, draw_train
from aang_core.corpora.unlabelled_texts import UnlabelledTexts
from aang_core.task_types.class_names import MOST_CLASSES
from aang_core.task_types.multi_label import MultiLabel
from aang_core.task_types.names import TRAITS, TaskTypeName
from aang_core.task_types.regression import Regression
from aang_core.task_types.single_label import ONE_CLASS, SingleLabel
from aang_core.task_types.task_type import TaskType
from aang_core.task_types.token_labels import NO_LABEL, TokenLabels
from aang_core.task_types.words import word_places
