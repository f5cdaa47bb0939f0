"""What gradients show before and during a training: ``aang diagnose``.

``Diagnosis`` is what the command measures.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_plugin_diagnose.objectives import Diagnosis as Diagnosis
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
