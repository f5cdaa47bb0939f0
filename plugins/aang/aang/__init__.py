"""The text application: train, evaluate and use text classifiers.

This is the index of its public names; each is imported when it is first used:

- ``train`` trains as ``aang train`` does, on files or on data in memory; ``Run`` reads what it
  left in its run folder.
- ``best`` finds the best way to a classifier as ``aang best`` does; ``AangClassifier`` and
  ``AangBest`` are both as estimators of scikit-learn. The standard plug-in aang-plugin-best brings
  these three.
- ``find_files``, ``read_lines`` and ``read_text_lines`` read text files for data primitives,
  ``cache_folder`` and ``atomic_write`` keep what is expensive to make.
- ``TextModel`` is the encoder that ``aang_prepare_model`` may change, ``TrainedPart`` what it
  returns.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_plugin_best.estimator import AangClassifier as AangClassifier
    from aang_plugin_best.python import AangBest as AangBest
    from aang_plugin_best.python import best as best

    from aang.corpora.cache import atomic_write as atomic_write
    from aang.corpora.cache import cache_folder as cache_folder
    from aang.corpora.places import find_files as find_files
    from aang.corpora.text_files import read_lines as read_lines
    from aang.corpora.text_files import read_text_lines as read_text_lines
    from aang.from_python.training import train as train
    from aang.modeling.body import TrainedPart as TrainedPart
    from aang.modeling.encoder import TextModel as TextModel
    from aang.runs.run import Run as Run
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
