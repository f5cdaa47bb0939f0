"""The engines that measure gradients, and dev heads."""

from aang_core.gradients import (
    UNCLIPPED,
    AveragedDevHead,
    DevHead,
    DevHeadSettings,
    DistributedEngine,
    DrawnDevHead,
    EndTaskHead,
    EngineSettings,
    FreshDevHead,
    GradientEngine,
    GradientStatistics,
    LogisticDevHead,
    PackedEngine,
    RememberingDevHead,
    Rider,
    Segment,
    StreamEngine,
    TaskClip,
    as_argument,
    as_option,
    check_engine,
    choose_dev_head,
    choose_engine,
    first_token,
    loss_scale,
)
from aang_core.gradients.engine import members_of
from aang_core.gradients.logistic_head import PENALTIES
from aang_core.gradients.loss_scale import FIRST
from aang_core.gradients.passes import Passes, Precision, joined
from aang_core.gradients.shared_passes import group_by_length, largest_batch, share_passes
from aang_core.gradients.task_gradient import rider_loss
