"""The kinds of end task: what a label is, and all that follows from it.

A kind is a subclass of :class:`TaskType` that a plug-in registers with
``aang_register_task_types``. :class:`SingleLabel`, one class a text, is the default, and
``aang-plugin-task-types`` has others. :mod:`~aang.task_types.choose` chooses one from the
data.

Public, for kinds of plug-ins:

- what a kind takes and returns: :class:`Cell`, :class:`LabelColumn`, :data:`Label`,
  :data:`Offsets`, :class:`EncodedLabels` with :data:`NO_LABEL`, :class:`Decoded`, :class:`Errors`;
- what reads cells: :func:`text_of`, :func:`class_name` and :func:`number`; :func:`spells_missing`;
  :func:`list_of`, :func:`list_in`, :func:`are_lists` and :func:`plain` for lists;
  :func:`word_places` and :func:`is_unspaced` for words;
- what names and scores classes: :func:`listed`, :func:`scores` and :func:`per_class`, each score
  a :data:`Metric`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.task_types.cells import Cell as Cell
    from aang.task_types.cells import class_name as class_name
    from aang.task_types.cells import listed as listed
    from aang.task_types.cells import number as number
    from aang.task_types.cells import spells_missing as spells_missing
    from aang.task_types.cells import text_of as text_of
    from aang.task_types.metrics import Metric as Metric
    from aang.task_types.metrics import per_class as per_class
    from aang.task_types.metrics import scores as scores
    from aang.task_types.single_label import SingleLabel as SingleLabel
    from aang.task_types.task_type import NO_LABEL as NO_LABEL
    from aang.task_types.task_type import Decoded as Decoded
    from aang.task_types.task_type import EncodedLabels as EncodedLabels
    from aang.task_types.task_type import Errors as Errors
    from aang.task_types.task_type import LabelColumn as LabelColumn
    from aang.task_types.task_type import Offsets as Offsets
    from aang.task_types.task_type import TaskType as TaskType
    from aang.task_types.words import is_unspaced as is_unspaced
    from aang.task_types.words import word_places as word_places
    from aang.task_types.written_lists import are_lists as are_lists
    from aang.task_types.written_lists import list_in as list_in
    from aang.task_types.written_lists import list_of as list_of
    from aang.task_types.written_lists import plain as plain
    from aang_core.objectives.stages.data import Label as Label
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
