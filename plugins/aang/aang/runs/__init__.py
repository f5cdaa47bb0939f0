"""Everything about a run: train, pre-train, fit, resume, read and predict.

Public, for commands of plug-ins that read runs or do work like a run:

- :func:`read_part` reads and validates a file of a run folder, such as :class:`Result`, the content
  of ``result.json``, with its :class:`ChosenScores`. :func:`read_lines` reads a log, whose lines
  are described by :class:`Cost` and :class:`DevScores`. :func:`recorded_draw` reads which rows
  the run has drawn. :func:`refuse_links` refuses a folder with links that lead out of it, or with
  pipes.
- :func:`linear_result` scores a linear model on features of an end task in :data:`LINEAR`, such as
  :func:`tf_idf`; :data:`TF_IDF` and :data:`PENALTIES` are those of every run's control.
- :func:`shown_score` formats a score for people, usually between 0 and 100.
- :func:`choose_device` returns the device that a run computes on, and :func:`settled_precision`
  the precision.
- :func:`interruptible` turns SIGINT and SIGTERM into :class:`Interrupted`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.runs.before import settled_precision as settled_precision
    from aang.runs.devices import choose_device as choose_device
    from aang.runs.files import read_lines as read_lines
    from aang.runs.files import read_part as read_part
    from aang.runs.files import refuse_links as refuse_links
    from aang.runs.inputs import recorded_draw as recorded_draw
    from aang.runs.linear_controls import PENALTIES as PENALTIES
    from aang.runs.linear_controls import TF_IDF as TF_IDF
    from aang.runs.linear_controls import linear_result as linear_result
    from aang.runs.linear_controls import tf_idf as tf_idf
    from aang.runs.schema import ChosenScores as ChosenScores
    from aang.runs.schema import Cost as Cost
    from aang.runs.schema import DevScores as DevScores
    from aang.runs.schema import Result as Result
    from aang.task_types.metrics import shown_score as shown_score
    from aang_core.training.interruption import Interrupted as Interrupted
    from aang_core.training.interruption import interruptible as interruptible
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
