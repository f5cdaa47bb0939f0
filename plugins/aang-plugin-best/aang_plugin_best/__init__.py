"""The command ``aang best``, which finds the best way to a classifier by outcome.

Every labelled row is predicted once by a model that has not seen it. The candidates race fold by
fold; the best one is trained again on all rows. From Python: ``from aang import best, AangBest``.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_plugin_best.python import AangBest as AangBest
    from aang_plugin_best.python import best as best
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
