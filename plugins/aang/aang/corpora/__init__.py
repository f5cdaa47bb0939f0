"""Everything that reads text.

Import each module by its own name, so that reading a file does not load a tokenizer library:

- :mod:`~aang.corpora.places`: the files that options name;
- :mod:`~aang.corpora.text_files`: their lines, whatever the compression and encoding;
- :mod:`~aang.corpora.tables`: files of records, with a reader for each format, and data in
  memory, which :mod:`~aang.corpora.in_memory` makes tables of;
- :mod:`~aang.corpora.columns`: the columns that options name;
- :mod:`~aang.corpora.labelled`: labelled examples from one table;
- :mod:`~aang.corpora.labelled_task`: train, dev and test of the end task;
- :mod:`~aang.corpora.dataset_task`: the same from a Hugging Face data set;
- :mod:`~aang.corpora.unlabelled_texts`: texts like the end task's own, without labels;
- :mod:`~aang.corpora.text_streams`: texts without end;
- :mod:`~aang.corpora.tokens`: texts as rows of token ids, with
  :mod:`~aang.corpora.token_cache` to tokenise only once;
- :mod:`~aang.corpora.cache`: the cache folder.

Public, for plug-ins that bring an end task: :class:`TaskWithTexts`.
For commands of plug-ins: :class:`LabelledTask` is the end task's texts and labels,
:func:`tokenize` turns texts into rows of token ids, and :func:`read_table` reads a file of records,
which :func:`stream_table` does for files of any size.
For data primitives of plug-ins: :class:`RepeatedTexts` makes a stream of any texts, and
:func:`names_of_files` says what a position in the files of a folder is saved by.
:func:`letter_runs` splits a text into words to compare, in scripts without spaces too, whose
letters :func:`is_unspaced` recognises, and :func:`well_formed` replaces halves of surrogate pairs,
which no file can hold.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.corpora.labelled_task import LabelledTask, TaskWithTexts
    from aang.corpora.places import names_of_files
    from aang.corpora.tables import read_table, stream_table
    from aang.corpora.text_files import well_formed
    from aang.corpora.text_streams import RepeatedTexts
    from aang.corpora.tokens import tokenize
    from aang.task_types.words import is_unspaced, letter_runs

__all__ = [
    "LabelledTask",
    "RepeatedTexts",
    "TaskWithTexts",
    "is_unspaced",
    "letter_runs",
    "names_of_files",
    "read_table",
    "stream_table",
    "tokenize",
    "well_formed",
]

_HOMES = {
    "aang.corpora.labelled_task": "LabelledTask TaskWithTexts",
    "aang.corpora.places": "names_of_files",
    "aang.corpora.text_streams": "RepeatedTexts",
    "aang.corpora.tables": "read_table stream_table",
    "aang.corpora.text_files": "well_formed",
    "aang.corpora.tokens": "tokenize",
    "aang.task_types.words": "is_unspaced letter_runs",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
