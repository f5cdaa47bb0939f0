"""Per-task gradient signals, and the gradient of the step itself, from one set of passes.

A weighter learns from how each task's body gradient g_k lies against the dev gradient v (TARTAN,
section 3.2; AANG, section 5). v goes through a dev head that is fitted at every step, on features
that are computed anyway.
"""

from aang_core.gradients.dev_head import (
    DevHead,
    EndTaskHead,
    FreshDevHead,
    RememberingDevHead,
)
from aang_core.gradients.distributed import DistributedEngine, task_by_task
from aang_core.gradients.engine import GradientEngine, Segment
from aang_core.gradients.loss_scale import LossScale
from aang_core.gradients.packed import PackedEngine
from aang_core.gradients.packing import HasRowFreeMethods, PacksRows, RowFreeMethod
from aang_core.gradients.signals import GradientStatistics
from aang_core.gradients.stream import StreamEngine

__all__ = [
    "DevHead",
    "DistributedEngine",
    "EndTaskHead",
    "FreshDevHead",
    "GradientEngine",
    "GradientStatistics",
    "HasRowFreeMethods",
    "LossScale",
    "PackedEngine",
    "PacksRows",
    "RememberingDevHead",
    "RowFreeMethod",
    "Segment",
    "StreamEngine",
    "task_by_task",
]
