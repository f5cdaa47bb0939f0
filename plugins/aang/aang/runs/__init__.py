"""Everything about a run: train, pre-train, fit, resume, read and predict.

Public, for commands of plug-ins that read runs or do work like a run:

- :func:`read_part` reads and validates a file of a run folder, such as :class:`Result`, the content
  of ``result.json``, with its :class:`ChosenScores`. :func:`read_lines` reads a log, whose lines
  are described by :class:`Cost` and :class:`DevScores`. :func:`recorded_draw` reads which rows
  the run has drawn. :func:`refuse_links` refuses a folder with links that lead out of it, or with
  pipes.
- :func:`card_of` writes the card of a run's model, given its :class:`Origins`.
  :func:`languages_in` reads the languages that another card names, and :func:`longest_text` the
  number of tokens that a run has cut texts to.
- :func:`linear_result` scores a linear model on features of an end task in :data:`LINEAR`, such as
  :func:`tf_idf`; :data:`TF_IDF` and :data:`PENALTIES` are those of every run's control.
- :func:`shown_score` words a score for people, who read them between 0 and 100.
- :func:`choose_device` returns the device that a run computes on, and :func:`settled_precision`
  the precision. :func:`usable_cores` returns how many cores it may keep busy.
- :func:`interruptible` turns SIGINT and SIGTERM into :class:`Interrupted`.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang.runs.before import settled_precision
    from aang.runs.cores import usable_cores
    from aang.runs.files import read_lines, read_part, refuse_links
    from aang.runs.inputs import recorded_draw
    from aang.runs.linear_controls import PENALTIES, TF_IDF, linear_result, tf_idf
    from aang.runs.model_card import Origins, card_of, languages_in, longest_text
    from aang.runs.schema import ChosenScores, Cost, DevScores, Result
    from aang.runs.training import choose_device
    from aang_core.training.evaluation import shown_score
    from aang_core.training.interruption import Interrupted, interruptible

__all__ = [
    "PENALTIES",
    "TF_IDF",
    "ChosenScores",
    "Cost",
    "DevScores",
    "Interrupted",
    "Origins",
    "Result",
    "card_of",
    "choose_device",
    "interruptible",
    "languages_in",
    "linear_result",
    "longest_text",
    "read_lines",
    "read_part",
    "recorded_draw",
    "refuse_links",
    "settled_precision",
    "shown_score",
    "tf_idf",
    "usable_cores",
]

_HOMES = {
    "aang.runs.cores": "usable_cores",
    "aang.runs.before": "settled_precision",
    "aang.runs.files": "read_lines read_part refuse_links",
    "aang.runs.inputs": "recorded_draw",
    "aang.runs.linear_controls": "PENALTIES TF_IDF linear_result tf_idf",
    "aang.runs.model_card": "Origins card_of languages_in longest_text",
    "aang.runs.schema": "ChosenScores Cost DevScores Result",
    "aang.runs.training": "choose_device",
    "aang_core.training.evaluation": "shown_score",
    "aang_core.training.interruption": "Interrupted interruptible",
}

# Hidden from type checkers: otherwise they would accept any misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
