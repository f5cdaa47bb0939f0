"""Builds model, rows and tasks from configurations and plug-ins.

Public, for commands of plug-ins that compute something on the end task without training:

- :func:`read_end_task` reads the task that a configuration names, and :func:`encoder_of` returns
  the encoder that it names; :func:`metric_of` returns the metric that its models are chosen by.
- :func:`option_owners` says which primitives, weighters and tasks may have options in a run.
- :func:`without_unread_text` leaves out text, such as that of ``--domain``, which a run does not
  read.
- :func:`predict` applies a model to tokenised rows, in batches.
- :class:`CheckedData` reads a data primitive, whose faults it names.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.assembly.labelled_tasks import option_owners, without_unread_text
    from aang.assembly.plan import metric_of
    from aang.assembly.prediction import predict
    from aang.assembly.sources import encoder_of, read_end_task
    from aang_core.contracts import CheckedData

__all__ = [
    "CheckedData",
    "encoder_of",
    "metric_of",
    "option_owners",
    "predict",
    "read_end_task",
    "without_unread_text",
]

_HOMES = {
    "aang.assembly.plan": "metric_of",
    "aang.assembly.labelled_tasks": "option_owners without_unread_text",
    "aang.assembly.prediction": "predict",
    "aang.assembly.sources": "encoder_of read_end_task",
    "aang_core.contracts": "CheckedData",
}

# Hidden from type checkers: otherwise they would accept any misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
