"""The kinds of end task: what a label is, and all that follows from it.

A kind is a subclass of :class:`TaskType` that a plug-in registers with
``aang_register_task_types``. :class:`SingleLabel`, one class a text, is the default, and
``aang-plugin-task-types`` has others. :mod:`~aang.task_types.choose` chooses one from the
data.

Public, for kinds of plug-ins:

- what a kind takes and hands over: :class:`Cell`, :class:`LabelColumn`, :data:`Label`,
  :data:`Offsets`, :class:`EncodedLabels` with :data:`NO_LABEL`, :class:`Decoded`, :class:`Errors`;
- what reads cells: :func:`text_of`, :func:`class_name` and :func:`number`; :func:`spells_missing`;
  :func:`list_of`, :func:`list_in`, :func:`are_lists` and :func:`plain` for lists;
  :func:`word_places` and :func:`is_unspaced` for words;
- what names and scores classes: :func:`listed`, :func:`per_class`, beside
  :func:`aang_core.scores`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.task_types.cells import Cell, class_name, listed, number, spells_missing, text_of
    from aang.task_types.single_label import SingleLabel
    from aang.task_types.task_type import (
        NO_LABEL,
        Decoded,
        EncodedLabels,
        Errors,
        LabelColumn,
        Offsets,
        TaskType,
    )
    from aang.task_types.words import is_unspaced, word_places
    from aang.task_types.written_lists import are_lists, list_in, list_of, plain
    from aang_core.objectives.stages.data import Label
    from aang_core.training.evaluation import per_class

__all__ = [
    "NO_LABEL",
    "Cell",
    "Decoded",
    "EncodedLabels",
    "Errors",
    "Label",
    "LabelColumn",
    "Offsets",
    "SingleLabel",
    "TaskType",
    "are_lists",
    "class_name",
    "is_unspaced",
    "list_in",
    "list_of",
    "listed",
    "number",
    "per_class",
    "plain",
    "spells_missing",
    "text_of",
    "word_places",
]

_HOMES = {
    "aang_core.objectives.stages.data": "Label",
    "aang.task_types.cells": ("Cell class_name listed number spells_missing text_of"),
    "aang.task_types.single_label": "SingleLabel",
    "aang.task_types.task_type": (
        "NO_LABEL Decoded EncodedLabels Errors LabelColumn Offsets TaskType"
    ),
    "aang.task_types.words": "is_unspaced word_places",
    "aang.task_types.written_lists": "are_lists list_in list_of plain",
    "aang_core.training.evaluation": "per_class",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
