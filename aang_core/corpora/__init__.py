"""Everything that reads text.

Import each module by its own name, so that reading a file does not load a tokenizer library:

- :mod:`~aang_core.corpora.labelled`: labelled examples from one file, with
  :mod:`~aang_core.corpora.tables` for the formats and :mod:`~aang_core.corpora.text_files` for
  compression and encoding;
- :mod:`~aang_core.corpora.labelled_task`: train, dev and test of the end task, with
  :mod:`~aang_core.corpora.dev_split` if there is no dev set;
- :mod:`~aang_core.corpora.dataset_task`: the same from a Hugging Face data set;
- :mod:`~aang_core.corpora.demo`: the built-in task;
- :mod:`~aang_core.corpora.tokens`: texts as rows of token ids, with
  :mod:`~aang_core.corpora.token_cache` to tokenise only once;
- :mod:`~aang_core.corpora.cache`: the cache folder.
"""
