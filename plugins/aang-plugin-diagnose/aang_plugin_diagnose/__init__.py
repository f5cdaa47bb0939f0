"""What gradients show before and during a training: ``aang diagnose``; and ``aang doctor``.

``Diagnosis`` is what the command measures, ``Theorem`` the bound that follows from it.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_plugin_diagnose.objectives import Diagnosis as Diagnosis
    from aang_plugin_diagnose.theorem import Theorem as Theorem
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
