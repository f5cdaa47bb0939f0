"""The plan of a run: every name in its options resolved, before any data is read.

Importing this module imports no torch. Making a plan imports no primitive unless it is asked to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang.config import AUXILIARY_TASKS, TrainConfig, without_default_recipe
from aang.task_types.choose import traits_of
from aang_core.errors import ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.space import Space, load_space
from aang_core.plugins.primitive import CORE, Primitive
from aang_core.plugins.registry import ONE_CLASS, Registry, did_you_mean
from aang_core.tasks.weighting import Weighter, require_several_draws

if TYPE_CHECKING:
    from aang.assembly.labelled_tasks import TaskFiles
    from aang.task_types.metrics import Metric
    from aang.task_types.task_type import TaskType

SettingsT = TypeVar("SettingsT", bound=BaseModel)

AUXILIARY_OBJECTIVE = "no-op/bidirectional/own-label"
"""An auxiliary task's objective, after the task's name: predict its labels from its text."""

READ_BY = {
    "domain": "reads:domain",
    "out_of_domain": "reads:out-of-domain",
    "unlabelled": "reads:unlabelled",
}
"""The options that name text, and the trait of the data primitives that read it."""


class StageSettings(BaseModel):
    """How long and how fast a stage of pre-training trains; by default like the main training.

    Attributes:
        head_lr: the learning rate of the language-model head; the body's rate by default, because
            the head is pre-trained.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(gt=0)
    eval_every: int = Field(gt=0)
    batch_size: int = Field(gt=0)
    lr: float = Field(gt=0, allow_inf_nan=False)
    head_lr: float = Field(gt=0, allow_inf_nan=False)


@dataclass(frozen=True)
class PretrainingStage:
    """One objective to pre-train on.

    Attributes:
        name: its name in the recipe, such as ``tapt``.
        objective: the objective.
        settings: how long and how fast to train.
    """

    name: str
    objective: Objective
    settings: StageSettings


@dataclass(frozen=True)
class Plan:
    """What a run trains.

    Attributes:
        config: the run's options.
        weighter: the weighter.
        objectives: the objectives; empty if the weighter trains the end task alone.
        pretraining: the stages of pre-training.
        alone: the weighter of these stages and of the final fine-tuning.
        notes: what is odd about them, a sentence each.
    """

    config: TrainConfig
    weighter: Primitive
    objectives: Sequence[Objective]
    pretraining: Sequence[PretrainingStage]
    alone: Primitive
    notes: Sequence[str] = ()

    @property
    def trained(self) -> list[Objective]:
        """The objectives, and then those of the stages of pre-training."""
        return [*self.objectives, *(stage.objective for stage in self.pretraining)]

    @property
    def owners(self) -> dict[str, Primitive | None]:
        """What may have options in ``--set``, by name; None for a stage or an auxiliary task.

        The columns of an auxiliary task are options even if the run trains the end task alone.
        """
        owners: dict[str, Primitive | None] = {p.key: p for o in self.trained for p in o.primitives}
        owners[self.weighter.key] = self.weighter
        others = (*self.config.aux_task, *(stage.name for stage in self.pretraining))
        return owners | {name: None for name in others if name not in owners}

    @property
    def unread(self) -> list[str]:
        """The options that name text which nothing in the run reads."""
        traits = frozenset[str]().union(*(o.data.provides for o in self.trained))
        named = (name for name in READ_BY if getattr(self.config, name))
        return [name for name in named if READ_BY[name] not in traits]

    def _loaded(self) -> "Plan":
        """Import the weighter and the primitives, and check the options that depend on them."""
        target, draws = self.weighter.load(), self.config.draws_per_step
        weighter = Weighter  # What a function makes is not known before it is called.
        if isinstance(target, type) and issubclass(target, Weighter):
            weighter = target
        called = f"--weighter {self.config.weighter}"
        require_several_draws(weighter, draws, f"--draws-per-step {draws}", called=called)
        plan = self if weighter.uses_auxiliaries else replace(self, objectives=())
        # A weighter that trains the end task alone ignores the space, but the options of the
        # space's primitives are accepted: a recipe may have both.
        for name in self.config.set:
            if name not in self.owners:
                hint = did_you_mean(name, plan.owners, "it uses")
                raise ConfigError(
                    f"--set {name}.…: this run uses no primitive or weighter {name!r}; {hint}"
                )
        for objective in plan.trained:
            for primitive in objective.primitives:
                primitive.load()
        return plan


def make_plan(
    config: TrainConfig,
    registry: Registry,
    auxiliary: "Sequence[TaskFiles]" = (),
    *,
    load: bool = True,
) -> Plan:
    """Look up everything that the options name, for an end task of the kind that they name.

    Without ``--task-type``, one class a text is assumed. If the default recipe does not suit the
    kind of task, the plan has the default space and weighter instead.

    Args:
        config: the run's options.
        registry: where names are looked up, with the data of the auxiliary tasks.
        auxiliary: the auxiliary tasks.
        load: whether to import the weighter and the primitives. Without it, a weighter that trains
            the end task alone keeps the objectives of the space, and ``--set`` is not checked.

    Raises:
        AangError: a name is unknown or ambiguous, an option is not used, no objective is legal, or
            a primitive cannot be imported.
    """
    try:
        return _plan(config, registry, auxiliary, load)
    except ConfigError:
        other = without_default_recipe(config, registry)
        if other is None or config.task_type in (None, ONE_CLASS.task_type):
            raise
    plan = _plan(other, registry, auxiliary, load)
    note = (
        f"the default recipe {config.recipe} needs one class a text, so the space {other.space} "
        f"is trained with the weighter {other.weighter}"
    )
    return replace(plan, notes=[note, *plan.notes])


def settled(
    plan: Plan, task_type: "TaskType", registry: Registry, auxiliary: "Sequence[TaskFiles]"
) -> Plan:
    """The plan once the end task is read and its kind is known.

    Args:
        plan: the plan for an end task of the kind that was assumed.
        task_type: the kind of the end task.
        registry: as for :func:`make_plan`.
        auxiliary: the auxiliary tasks.

    Raises:
        ConfigError: an option is not for this kind of end task.
    """
    config, assumed = plan.config, plan.config.task_type or ONE_CLASS.task_type
    config = config.model_copy(
        update={"task_type": task_type.name, "metric": metric_of(config, task_type)}
    )
    if task_type.reads_every_token and config.dev_head_fit != "adamw":
        raise ConfigError(
            f"--dev-head-fit {config.dev_head_fit}: is for one label a text, and this task labels "
            "words; leave the option out"
        )
    if task_type.reads_every_token and config.test_predictions:
        raise ConfigError(
            "--test-predictions: is for one row of logits a text, and this task labels words; "
            "leave it out"
        )
    if task_type.reads_every_token and config.text_pair is not None:
        raise ConfigError("--text-pair: labels of words are for single texts; leave it out")
    if task_type.name == assumed:
        return replace(plan, config=config)
    return make_plan(config, registry, auxiliary)


def metric_of(config: TrainConfig, task_type: "TaskType") -> "Metric":
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


def _plan(
    config: TrainConfig, registry: Registry, auxiliary: "Sequence[TaskFiles]", load: bool
) -> Plan:
    registry = registry.for_end_task(traits_of(config.task_type, registry))
    weighter = registry.weighter(config.weighter)
    objectives, notes = _objectives(config, registry, auxiliary)
    plan = Plan(
        config,
        weighter,
        objectives,
        _stages(config, registry),
        registry.as_meant_by(CORE).weighter("single-task"),
        notes,
    )
    return plan._loaded() if load else plan


def _objectives(
    config: TrainConfig, registry: Registry, auxiliary: "Sequence[TaskFiles]"
) -> tuple[list[Objective], list[str]]:
    """The legal objectives of the space and one for each auxiliary task that it does not read.

    Returns:
        The objectives, and notes about the space.
    """
    objectives: list[Objective] = []
    notes: list[str] = []
    if config.space != AUXILIARY_TASKS or not auxiliary:
        space = load_space(config.space, registry)
        lost = _lost_to_kind(space)
        if not space.objectives:
            why = f"{lost[0].illegal_because}; " if lost else ""
            hint = "; ".join([f"{why}aang show-space {config.space} says why", *space.notes])
            raise ConfigError(
                f"--space {config.space}: none of its {len(space.combinations)} combinations is "
                f"legal; {hint}"
            )
        objectives, notes = [*space.objectives], [*space.notes]
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            notes.append(f"{lost[0].name}{more} left out: {lost[0].illegal_because}")
    read = {objective.data.name for objective in objectives}
    ours = registry.as_meant_by(CORE)
    for task in auxiliary:
        if task.name not in read:
            objectives.append(Objective.parse(f"{task.name}/{AUXILIARY_OBJECTIVE}", ours))
    return objectives, notes


def _lost_to_kind(space: Space) -> list[Objective]:
    """The combinations that only an end task with one class a text can have."""
    ordinary = replace(space, end_task=ONE_CLASS)
    legal = {objective.name for objective in ordinary.objectives}
    return [o for o in space.combinations if o.name in legal and not o.legal]


def _stages(config: TrainConfig, registry: Registry) -> list[PretrainingStage]:
    if not config.recipe:
        return []
    recipe = registry.recipes.find(config.recipe)
    theirs = registry.as_meant_by(recipe.origin.distribution)
    return [
        PretrainingStage(name, Objective.parse(name, theirs), _stage_settings(name, config))
        for name in recipe.pretraining
    ]


def _stage_settings(name: str, config: TrainConfig) -> StageSettings:
    """The settings of the stage ``name``: those of ``--set NAME.…``, then those of the run."""
    given = config.set.get(name, {})
    base = {option: getattr(config, option) for option in StageSettings.model_fields}
    base["head_lr"] = given.get("lr", config.lr)
    return validated(StageSettings, name, {**base, **given}, "a stage of pre-training")


def validated(kind: type[SettingsT], name: str, given: Mapping[str, Any], what: str) -> SettingsT:
    """The options ``--set NAME.…`` of something that is not a primitive.

    Args:
        kind: their schema.
        name: ``NAME``.
        given: the options, with the defaults that depend on others.
        what: what has these options, for messages.

    Raises:
        ConfigError: there is no such option, or its value is invalid.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        wrong = error.errors()[0]
        option = ".".join(str(part) for part in wrong["loc"])
        raise ConfigError(
            f"--set {name}.{option}: {wrong['msg']}; {what} has the options "
            f"{', '.join(kind.model_fields)}"
        ) from error
