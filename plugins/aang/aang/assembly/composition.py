"""What a run is composed of: its weighter, its objectives and its stages of pre-training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from aang.assembly.chain_stage import PretrainingStage, stage_settings
from aang.assembly.labelled_tasks import supervised_objectives
from aang.config import AUXILIARY_TASKS, TrainConfig, without_default_recipe
from aang.corpora.task_files import TaskFiles
from aang.task_types.names import TRAITS
from aang.task_types.task_type import TaskType
from aang_core.errors import ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.recipes import find_recipe
from aang_core.objectives.space import Space, load_space
from aang_core.plugins.end_task_traits import ONE_CLASS
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import Registry
from aang_core.tasks.weighting import require_several_draws
from aang_core.training.evaluation import Metric


@dataclass(frozen=True)
class Composition:
    """The primitives of a run.

    Attributes:
        weighter: the weighter.
        objectives: the objectives; empty if the weighter trains the end task alone.
        stages: the stages of pre-training.
        notes: what is odd about them, a sentence each.
    """

    weighter: Primitive
    objectives: Sequence[Objective]
    stages: Sequence[PretrainingStage]
    notes: Sequence[str]

    @property
    def data(self) -> Sequence[Primitive]:
        """The data primitives of the objectives and of the stages."""
        stages = (stage.objective for stage in self.stages)
        return [objective.data for objective in (*self.objectives, *stages)]


def compose(config: TrainConfig, registry: Registry, auxiliary: Sequence[TaskFiles]) -> Composition:
    """Look up everything that the options name, for an end task of the kind that they name.

    Without ``--task-type``, the end task is taken for a single-label one.

    Args:
        config: the run's options.
        registry: where names are looked up, with the data of the auxiliary tasks.
        auxiliary: the auxiliary tasks.

    Raises:
        AangError: a name is unknown or ambiguous, an option is not used, no objective is legal, or
            a primitive cannot be imported.
    """
    registry = registry.for_end_task(TRAITS[config.task_type or "single-label"])
    weighter = registry.weighter(config.weighter)
    draws = config.draws_per_step
    require_several_draws(
        *(weighter.load(), draws, f"--draws-per-step {draws}"),
        called=f"--weighter {config.weighter}",
    )
    objectives, notes = _objectives(config, registry, auxiliary)
    if not getattr(weighter.load(), "uses_auxiliaries", True):
        objectives = []
    stages = _stages(config, registry)
    composed = [*objectives, *(stage.objective for stage in stages)]
    _check_settings(config, weighter, composed, stages)
    for primitive in dict.fromkeys(p for objective in composed for p in objective.primitives):
        primitive.load()
    return Composition(weighter, objectives, stages, notes)


def compose_or_default(
    config: TrainConfig, registry: Registry, auxiliary: Sequence[TaskFiles]
) -> tuple[TrainConfig, Composition]:
    """Like :func:`compose`, but the default recipe gives way to a kind of task that it cannot have.

    Returns:
        The options, with the default space and weighter if the recipe gave way, and what they name.

    Raises:
        AangError: like :func:`compose`.
    """
    try:
        return config, compose(config, registry, auxiliary)
    except ConfigError:
        other = without_default_recipe(config, registry)
        if other is None or config.task_type in (None, "single-label"):
            raise
    composed = compose(other, registry, auxiliary)
    note = (
        f"the default recipe {config.recipe} needs one class a text, so the space {other.space} "
        f"is trained with the weighter {other.weighter}"
    )
    return other, replace(composed, notes=[note, *composed.notes])


def settle(
    config: TrainConfig,
    task_type: TaskType,
    composed: Composition,
    registry: Registry,
    auxiliary: Sequence[TaskFiles],
) -> tuple[TrainConfig, Composition]:
    """What becomes of the options once the end task is read and its kind is known.

    Args:
        config: the run's options.
        task_type: the kind of its end task.
        composed: what they have named for an end task of the kind that was assumed.
        registry: as for :func:`compose`.
        auxiliary: the auxiliary tasks.

    Returns:
        The options with the kind of the end task and with its default metric, and what the run is
        composed of.

    Raises:
        ConfigError: an option is not for this kind of end task.
    """
    assumed = config.task_type or "single-label"
    config = config.model_copy(update={"task_type": task_type.name})
    config = config.model_copy(update={"metric": metric_of(config, task_type)})
    if task_type.reads_every_token and config.dev_head_fit == "logistic":
        raise ConfigError(
            "--dev-head-fit logistic: is for one label a text, and this task labels words; leave "
            "the option out"
        )
    if task_type.reads_every_token and config.text_pair is not None:
        raise ConfigError("--text-pair: labels of words are for single texts; leave it out")
    if task_type.name == assumed:
        return config, composed
    return compose_or_default(config, registry, auxiliary)


def metric_of(config: TrainConfig, task_type: TaskType) -> Metric:
    """The metric that the user chose, or the default of the kind of task.

    Raises:
        ConfigError: models of this kind cannot be chosen by it.
    """
    if "metric" not in config.model_fields_set:
        return task_type.metrics[0]
    if config.metric not in task_type.metrics:
        lower = ""
        if config.metric == "rmse":
            lower = " (rmse is better when lower; r2 ranks models alike)"
        raise ConfigError(
            f"--metric {config.metric}: the models of a {task_type.name} task are chosen by "
            f"{' or '.join(task_type.metrics)}{lower}"
        )
    return config.metric


def _objectives(
    config: TrainConfig, registry: Registry, auxiliary: Sequence[TaskFiles]
) -> tuple[list[Objective], Sequence[str]]:
    """The legal objectives of the space, and one for each auxiliary task that it does not read.

    Returns:
        The objectives, and notes about the space.
    """
    if config.space == AUXILIARY_TASKS and auxiliary:
        return supervised_objectives(registry, auxiliary), ()
    space = load_space(config.space, registry)
    lost = _lost_to_kind(space)
    if not space.objectives:
        why = f"{lost[0].illegal_because}; " if lost else ""
        hint = "; ".join([f"{why}aang show-space {config.space} says why", *space.notes])
        raise ConfigError(
            f"--space {config.space}: none of its {len(space.combinations)} combinations is legal; "
            f"{hint}"
        )
    notes = [*space.notes]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        notes.append(f"{lost[0].name}{more} left out: {lost[0].illegal_because}")
    supervised = supervised_objectives(registry, auxiliary, space.objectives)
    return [*space.objectives, *supervised], notes


def _lost_to_kind(space: Space) -> list[Objective]:
    """The combinations that only a single-label end task can have."""
    ordinary = replace(space, end_task=ONE_CLASS)
    legal = {objective.name for objective in ordinary.objectives}
    return [o for o in space.combinations if o.name in legal and not o.legal]


def _stages(config: TrainConfig, registry: Registry) -> list[PretrainingStage]:
    return [
        PretrainingStage(name, objective, stage_settings(name, config))
        for name, objective in stage_objectives(config, registry).items()
    ]


def stage_objectives(config: TrainConfig, registry: Registry) -> dict[str, Objective]:
    """The objective of each of the recipe's stages of pre-training, by the stage's name."""
    if not config.recipe:
        return {}
    recipe = find_recipe(config.recipe, registry)
    theirs = registry.as_meant_by(recipe.origin.distribution)
    return {name: Objective.parse(name, theirs) for name in recipe.pretraining}


def owners_among(
    weighter: Primitive, objectives: Iterable[Objective], others: Iterable[str]
) -> dict[str, Primitive | None]:
    """What may have options in a run with this weighter and these objectives, by name.

    Args:
        weighter: the weighter.
        objectives: the objectives, and those of the stages of pre-training.
        others: names of auxiliary tasks and of stages. The columns of a task are options, too, even
            if the run trains the end task alone.
    """
    owners: dict[str, Primitive | None] = {p.key: p for o in objectives for p in o.primitives}
    owners[weighter.key] = weighter
    return owners | {name: None for name in others if name not in owners}


def _check_settings(
    config: TrainConfig,
    weighter: Primitive,
    objectives: Sequence[Objective],
    stages: Sequence[PretrainingStage],
) -> None:
    others = (*config.aux_task, *(stage.name for stage in stages))
    used = owners_among(weighter, objectives, others)
    for name in config.set:
        if name not in used:
            hint = did_you_mean(name, used, "it uses")
            raise ConfigError(
                f"--set {name}.…: this run uses no primitive or weighter {name!r}; {hint}"
            )
