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

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_core.gradients.dev_head import DevAverage as DevAverage
    from aang_core.gradients.dev_head import DevHead as DevHead
    from aang_core.gradients.dev_head import DevHeadFactory as DevHeadFactory
    from aang_core.gradients.dev_head import DevHeadSettings as DevHeadSettings
    from aang_core.gradients.dev_head import EndTaskHead as EndTaskHead
    from aang_core.gradients.dev_head import FreshDevHead as FreshDevHead
    from aang_core.gradients.dev_head import RememberingDevHead as RememberingDevHead
    from aang_core.gradients.dev_head import fitted_dev_head as fitted_dev_head
    from aang_core.gradients.engine import EngineFactory as EngineFactory
    from aang_core.gradients.engine import EngineSettings as EngineSettings
    from aang_core.gradients.engine import GradientEngine as GradientEngine
    from aang_core.gradients.ledger import GradientStatistics as GradientStatistics
    from aang_core.gradients.ledger import Ledger as Ledger
    from aang_core.gradients.ledger import TaskClip as TaskClip
    from aang_core.gradients.ledger import assemble_statistics as assemble_statistics
    from aang_core.gradients.passes import LossScale as LossScale
    from aang_core.gradients.passes import Passes as Passes
    from aang_core.gradients.passes import mean_gradient as mean_gradient
    from aang_core.gradients.passes import rider_loss as rider_loss
    from aang_core.gradients.passes import trained as trained
    from aang_core.gradients.segments import CannotPackError as CannotPackError
    from aang_core.gradients.segments import Pack as Pack
    from aang_core.gradients.segments import PacksRows as PacksRows
    from aang_core.gradients.segments import Rider as Rider
    from aang_core.gradients.segments import Segment as Segment
    from aang_core.gradients.segments import batch_norm_of as batch_norm_of
    from aang_core.gradients.segments import members_of as members_of
    from aang_core.gradients.stream import StreamEngine as StreamEngine
    from aang_core.tasks.processes import ALONE as ALONE
    from aang_core.tasks.task import to_device as to_device
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
