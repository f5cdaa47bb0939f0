"""Per-task gradient signals and the gradient of the step, computed in the same passes.

A weighter learns from the cosine or dot product of each task's body gradient g_k with the dev
gradient v (TARTAN, section 3.2; AANG, section 5). v goes through a dev head that is fitted at every
step that measures, on features of rows other than the step's own.

Public, for plug-ins with an engine of their own (``aang_register_engines``):

- A :class:`GradientEngine` takes one :class:`Segment` for each task, with a :class:`Rider` for each
  further task on its rows (:func:`members_of` lists both), undoes the :class:`LossScale`, and
  returns :class:`GradientStatistics`, of the sums in a :class:`Ledger` or of its own by
  :func:`assemble_statistics`. An :class:`EngineFactory` makes the engine from
  :class:`EngineSettings`. ``ALONE`` is the process of a training in one process.
- :class:`Passes` run rows through the body and a head, :func:`mean_gradient` computes one task's
  gradient, :func:`rider_loss` a rider's loss, :func:`trained` lists trained parameters,
  :func:`to_device` copies without waiting. :class:`StreamEngine` is there to fall back to, and
  :class:`TaskClip` clips.
- :class:`Pack` puts rows of several tasks into one pass, if the body accepts them or
  :class:`PacksRows`, and raises :class:`CannotPackError`; :func:`batch_norm_of` finds what mixes
  the rows of a pass.
- A :class:`DevHead` provides the head that v goes through: :class:`RememberingDevHead`,
  :class:`FreshDevHead`, :class:`EndTaskHead`; :class:`DevAverage` smooths it. A
  :class:`DevHeadFactory` makes one from :class:`DevHeadSettings` (``aang_register_dev_heads``);
  one that chooses rows leaves the fit to :func:`fitted_dev_head`.
"""

from aang_core.gradients.dev_head import (
    DevAverage,
    DevHead,
    DevHeadFactory,
    DevHeadSettings,
    EndTaskHead,
    FreshDevHead,
    RememberingDevHead,
    fitted_dev_head,
)
from aang_core.gradients.engine import EngineFactory, EngineSettings, GradientEngine
from aang_core.gradients.ledger import GradientStatistics, Ledger, TaskClip, assemble_statistics
from aang_core.gradients.passes import LossScale, Passes, mean_gradient, rider_loss, trained
from aang_core.gradients.segments import (
    CannotPackError,
    Pack,
    PacksRows,
    Rider,
    Segment,
    batch_norm_of,
    members_of,
)
from aang_core.gradients.stream import StreamEngine
from aang_core.tasks.processes import ALONE
from aang_core.tasks.task import to_device

__all__ = [
    "ALONE",
    "CannotPackError",
    "DevAverage",
    "DevHead",
    "DevHeadFactory",
    "DevHeadSettings",
    "EndTaskHead",
    "EngineFactory",
    "EngineSettings",
    "FreshDevHead",
    "GradientEngine",
    "GradientStatistics",
    "Ledger",
    "LossScale",
    "Pack",
    "PacksRows",
    "Passes",
    "RememberingDevHead",
    "Rider",
    "Segment",
    "StreamEngine",
    "TaskClip",
    "assemble_statistics",
    "batch_norm_of",
    "fitted_dev_head",
    "mean_gradient",
    "members_of",
    "rider_loss",
    "to_device",
    "trained",
]
