"""The options of a training: their schema, the files that hold them, and how they are resolved."""

from aang_core.config.files import read_config_file, refuse_trust
from aang_core.config.resolving import (
    AUXILIARY_TASKS,
    recorded_config,
    resolve_config,
    resolve_training,
    sentence,
)
from aang_core.config.schema import TrainConfig

__all__ = [
    "AUXILIARY_TASKS",
    "TrainConfig",
    "read_config_file",
    "recorded_config",
    "refuse_trust",
    "resolve_config",
    "resolve_training",
    "sentence",
]
