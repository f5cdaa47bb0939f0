"""The engines that measure gradients, and dev heads."""

from aang_plugin_dev_heads.drawn import DrawnDevHead
from aang_plugin_dev_heads.logistic import PENALTIES, LogisticDevHead
from aang_plugin_distributed import engine
from aang_plugin_distributed.processes import Several
from aang_plugin_packed import packed
from torch import nn

from aang_core import Processes
from aang_core.gradients import (
    DevAverage,
    DevHead,
    DevHeadSettings,
    EndTaskHead,
    EngineSettings,
    FreshDevHead,
    GradientEngine,
    GradientStatistics,
    RememberingDevHead,
    Rider,
    Segment,
    StreamEngine,
    TaskClip,
    passes,
)
from aang_core.gradients.dev_head import choose_dev_head, find_dev_heads, first_token
from aang_core.gradients.engine import (
    as_argument,
    as_option,
    check_engine,
    choose_engine,
    find_engine,
)
from aang_core.gradients.ledger import UNCLIPPED
from aang_core.gradients.passes import FIRST, Passes, Precision, joined, rider_loss
from aang_core.gradients.segments import group_by_length, largest_batch, members_of, share_passes


class PackedEngine(packed.PackedEngine):
    """The packed engine, made from its precision."""

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        precision: Precision = "fp32",
        *,
        max_rows: int | None = None,
    ) -> None:
        super().__init__(body, dev_head, EngineSettings(precision=precision), max_rows)


class DistributedEngine(engine.DistributedEngine):
    """The engine of several processes, made from its precision."""

    def __init__(
        self,
        body: nn.Module,
        dev_head: DevHead,
        precision: Precision,
        processes: Processes,
        *,
        clip: TaskClip = UNCLIPPED,
    ) -> None:
        settings = EngineSettings(precision=precision, task_clip=clip.norm)
        super().__init__(body, dev_head, settings, processes)
