"""Reading, tokenising and splitting data, and the kinds of end task."""

from aang.corpora import (
    LabelledTask,
    RepeatedTexts,
    letter_runs,
    memory_limit,
    places,
    text_files,
    token_cache,
)
from aang.corpora.cache import chosen_cache_folder, make_folder
from aang.corpora.dataset_folder import refuse_files_elsewhere
from aang.corpora.dataset_task import load_dataset_task
from aang.corpora.demo import (
    DEV_SIZE,
    MIN_CHARACTERS,
    PACKAGES,
    TRAIN_SIZE,
    DemoTask,
    DemoTaskUnavailable,
    load_demo_task,
    strip_package_names,
)
from aang.corpora.demo_unlabelled import UnlabelledParagraphs, comments
from aang.corpora.in_memory import TableInMemory, table_in_memory
from aang.corpora.labelled import Columns, LabelledRows, read_rows
from aang.corpora.labelled_task import load_task
from aang.corpora.names import task_name
from aang.corpora.pieces import Cutter, PieceStream, digest, pieces_of
from aang.corpora.tables import read_table, stream_table
from aang.corpora.task_files import LabelledFile, TaskFiles
from aang.corpora.tokenizer_definition import tokenizer_digest
from aang.corpora.tokens import PaddedRows, TokenRows, tokenize, vocabulary
from aang.corpora.train_draw import class_shares, draw_train
from aang.corpora.unlabelled_texts import UnlabelledTexts
from aang.task_types.class_names import MOST_CLASSES
from aang.task_types.multi_label import MultiLabel
from aang.task_types.names import TRAITS, TaskTypeName
from aang.task_types.regression import Regression
from aang.task_types.single_label import ONE_CLASS, SingleLabel
from aang.task_types.task_type import TaskType
from aang.task_types.token_labels import NO_LABEL, TokenLabels
from aang.task_types.words import word_places
