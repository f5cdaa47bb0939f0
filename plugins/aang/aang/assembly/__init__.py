"""Builds model, rows and tasks from configurations and plug-ins.

Public, for commands of plug-ins that compute something on the end task without training:

- :func:`read_end_task` reads the task that a configuration names, and :func:`encoder_of` returns
  the encoder that it names; :func:`metric_of` returns the metric that its models are chosen by.
- :func:`option_owners` says which primitives, weighters and tasks may have options in a run.
- :func:`without_unread_text` leaves out text, such as that of ``--domain``, which a run does not
  read.
- :func:`predict` applies a model to tokenised rows, in batches.
- :class:`CheckedData` reads a data primitive and attributes faults to it.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang.assembly.labelled_tasks import option_owners as option_owners
    from aang.assembly.labelled_tasks import without_unread_text as without_unread_text
    from aang.assembly.plan import metric_of as metric_of
    from aang.assembly.prediction import predict as predict
    from aang.assembly.sources import encoder_of as encoder_of
    from aang.assembly.sources import read_end_task as read_end_task
    from aang_core.contracts import CheckedData as CheckedData
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
