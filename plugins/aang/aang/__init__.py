"""The text application: train, evaluate and use text classifiers.

This is the index of its public names; each is imported when it is first used:

- ``train`` trains as ``aang train`` does, on files or on data in memory; ``AangClassifier`` is a
  scikit-learn estimator; ``Run`` reads a run folder.
- ``find_files``, ``read_lines`` and ``read_text_lines`` read text files for data primitives,
  ``cache_folder`` and ``atomic_write`` keep what is expensive to make.
- ``TextModel`` is the encoder that ``aang_prepare_model`` may change, ``TrainedPart`` what it
  returns.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.corpora.cache import atomic_write, cache_folder
    from aang.corpora.places import find_files
    from aang.corpora.text_files import read_lines, read_text_lines
    from aang.from_python.estimator import AangClassifier
    from aang.from_python.training import train
    from aang.modeling.body import TrainedPart
    from aang.modeling.encoder import TextModel
    from aang.runs.run import Run

__all__ = [
    "AangClassifier",
    "Run",
    "TextModel",
    "TrainedPart",
    "atomic_write",
    "cache_folder",
    "find_files",
    "read_lines",
    "read_text_lines",
    "train",
]

_HOMES = {
    "aang.corpora.cache": "atomic_write cache_folder",
    "aang.corpora.places": "find_files",
    "aang.corpora.text_files": "read_lines read_text_lines",
    "aang.from_python.estimator": "AangClassifier",
    "aang.from_python.training": "train",
    "aang.modeling.encoder": "TextModel",
    "aang.modeling.body": "TrainedPart",
    "aang.runs.run": "Run",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
