"""Per-task gradient signals and the gradient of the step, computed in the same passes.

A weighter learns from the cosine or dot product of each task's body gradient g_k with the dev
gradient v (TARTAN, section 3.2; AANG, section 5). v goes through a dev head that is fitted at every
step that measures, on features of rows other than the step's own.
"""

from aang_core.gradients.choose_dev_head import (
    DevHeadFit,
    DevHeadRows,
    DevHeadSettings,
    choose_dev_head,
    first_token,
)
from aang_core.gradients.choose_engine import (
    EngineKind,
    EngineSettings,
    as_argument,
    as_option,
    check_engine,
    choose_engine,
)
from aang_core.gradients.dev_average import AveragedDevHead
from aang_core.gradients.dev_head import (
    DevHead,
    DrawnDevHead,
    EndTaskHead,
    FreshDevHead,
    RememberingDevHead,
)
from aang_core.gradients.distributed import DistributedEngine
from aang_core.gradients.engine import GradientEngine, Rider, Segment, members_of
from aang_core.gradients.logistic_head import LogisticDevHead
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.packed import PackedEngine
from aang_core.gradients.packing import HasRowFreeMethods, PacksRows, RowFreeMethod
from aang_core.gradients.signals import GradientStatistics
from aang_core.gradients.stream import StreamEngine
from aang_core.gradients.task_clip import UNCLIPPED, TaskClip

__all__ = [
    "UNCLIPPED",
    "AveragedDevHead",
    "DevHead",
    "DevHeadFit",
    "DevHeadRows",
    "DevHeadSettings",
    "DistributedEngine",
    "DrawnDevHead",
    "EndTaskHead",
    "EngineKind",
    "EngineSettings",
    "FreshDevHead",
    "GradientEngine",
    "GradientStatistics",
    "HasRowFreeMethods",
    "LogisticDevHead",
    "LossScale",
    "PackedEngine",
    "PacksRows",
    "RememberingDevHead",
    "Rider",
    "RowFreeMethod",
    "Segment",
    "StreamEngine",
    "TaskClip",
    "as_argument",
    "as_option",
    "check_engine",
    "choose_dev_head",
    "choose_engine",
    "first_token",
    "members_of",
]
