"""What may have options in a run, before any data is read or a model is loaded."""

from aang_core.assembly.composition import owners_among, stage_objectives
from aang_core.assembly.labelled_tasks import (
    auxiliary_files,
    supervised_objectives,
    with_auxiliary_data,
)
from aang_core.config import AUXILIARY_TASKS, TrainConfig
from aang_core.objectives.objective import Objective
from aang_core.objectives.space import load_space
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import Registry


def option_owners(config: TrainConfig, registry: Registry) -> dict[str, Primitive | None]:
    """What ``--set NAME.OPTION`` may name in a run.

    Args:
        config: the run's options; those in ``set`` are ignored, but for the columns of its tasks.
        registry: where names are looked up.

    Returns:
        The weighter and the primitives by name; None stands for an auxiliary task and for a stage
        of pre-training, whose options belong to no primitive.

    Raises:
        AangError: a name is unknown or ambiguous.
    """
    weighter = registry.weighter(config.weighter)
    auxiliary = auxiliary_files(config)
    registry = with_auxiliary_data(registry, auxiliary)
    objectives: list[Objective] = []
    if config.space != AUXILIARY_TASKS or not auxiliary:
        objectives += load_space(config.space, registry).objectives
    objectives += supervised_objectives(registry, auxiliary, objectives)
    stages = stage_objectives(config, registry)
    objectives += stages.values()
    return owners_among(weighter, objectives, (*config.aux_task, *stages))
