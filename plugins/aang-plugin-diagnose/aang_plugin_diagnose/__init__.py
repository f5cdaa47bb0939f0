"""What gradients show before and during a training: ``aang diagnose``.

``Diagnosis`` is what the command measures.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang_plugin_diagnose.objectives import Diagnosis

__all__ = ["Diagnosis"]

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"aang_plugin_diagnose.objectives": "Diagnosis"})
