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
- :mod:`~aang.corpora.text_streams`: texts that repeat without end;
- :mod:`~aang.corpora.tokens`: texts as rows of token ids, with
  :mod:`~aang.corpora.token_cache` to tokenise only once;
- :mod:`~aang.corpora.cache`: the cache folder.

Public, for plug-ins that bring an end task: :class:`TaskWithTexts`.
For commands of plug-ins: :class:`LabelledTask` is the end task's texts and labels,
:func:`tokenize` turns texts into rows of token ids, and :func:`read_table` reads a file of records,
which :func:`stream_table` does for files of any size.
For data primitives of plug-ins: :class:`RepeatedTexts` makes a stream of any texts, and
:func:`names_of_files` gives files names under which a position in them can be saved.
:func:`letter_runs` splits a text into words to compare, in scripts without spaces too, whose
letters :func:`is_unspaced` recognises, and :func:`well_formed` replaces halves of surrogate pairs,
which no file can hold.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.corpora.labelled_task import LabelledTask as LabelledTask
    from aang.corpora.labelled_task import TaskWithTexts as TaskWithTexts
    from aang.corpora.places import names_of_files as names_of_files
    from aang.corpora.tables import read_table as read_table
    from aang.corpora.tables import stream_table as stream_table
    from aang.corpora.text_files import well_formed as well_formed
    from aang.corpora.text_streams import RepeatedTexts as RepeatedTexts
    from aang.corpora.tokens import tokenize as tokenize
    from aang.task_types.words import is_unspaced as is_unspaced
    from aang.task_types.words import letter_runs as letter_runs
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
