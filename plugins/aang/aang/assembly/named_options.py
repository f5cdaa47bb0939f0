"""What a run would use of its options, before any data is read or a model is loaded."""

from aang.assembly.composition import compose, owners_among, stage_objectives
from aang.assembly.labelled_tasks import auxiliary_files, supervised_objectives, with_auxiliary_data
from aang.assembly.text_options import READ_BY, unread
from aang.config import AUXILIARY_TASKS, TrainConfig, without_default_recipe
from aang.task_types.names import TRAITS
from aang_core.errors import ConfigError
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
        AangError: a name is unknown or ambiguous, or the weighter cannot be imported.
    """
    config = _settled_by_task_type(config, registry)
    stages = stage_objectives(config, registry)
    return owners_among(
        registry.weighter(config.weighter),
        _trained(config, registry),
        (*config.aux_task, *stages),
    )


def without_unread_text(config: TrainConfig, registry: Registry) -> TrainConfig:
    """The options without those that name text which the run does not read.

    For commands that offer the same text to several methods, some of which do not read it.

    Args:
        config: the run's options.
        registry: where names are looked up.

    Raises:
        AangError: a name is unknown or ambiguous, or the weighter cannot be imported.
    """
    if not any(getattr(config, name) for name in READ_BY):
        return config
    names = unread(config, [objective.data for objective in _trained(config, registry)])
    return config.model_copy(update=dict.fromkeys(names, ()))


def _settled_by_task_type(config: TrainConfig, registry: Registry) -> TrainConfig:
    """The options with which a run trains the kind of task that they name.

    The default recipe gives way to a kind that it cannot serve.
    """
    other = without_default_recipe(config, registry)
    if other is None or config.task_type in (None, "single-label"):
        return config
    bare = config.model_copy(update={"set": {}})
    try:
        compose(bare, registry, auxiliary_files(config))
    except ConfigError:
        return other
    return config


def _trained(config: TrainConfig, registry: Registry) -> list[Objective]:
    """The objectives of the stages of pre-training, and those that the weighter uses."""
    objectives = list(stage_objectives(config, registry).values())
    if getattr(registry.weighter(config.weighter).load(), "uses_auxiliaries", True):
        objectives += _of_space(config, registry)
    return objectives


def _of_space(config: TrainConfig, registry: Registry) -> list[Objective]:
    """The objectives of the space and of the auxiliary tasks."""
    registry = registry.for_end_task(TRAITS[config.task_type or "single-label"])
    auxiliary = auxiliary_files(config)
    registry = with_auxiliary_data(registry, auxiliary)
    objectives: list[Objective] = []
    if config.space != AUXILIARY_TASKS or not auxiliary:
        objectives += load_space(config.space, registry).objectives
    return [*objectives, *supervised_objectives(registry, auxiliary, objectives)]
