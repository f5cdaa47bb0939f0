"""What the options of a run name: its weighter, its objectives and its stages of pre-training."""

from collections.abc import Sequence
from dataclasses import dataclass

from aang_core.assembly.chain_stage import PretrainingStage, stage_settings
from aang_core.assembly.labelled_tasks import (
    auxiliary_files,
    supervised_objectives,
    with_auxiliary_data,
)
from aang_core.config import AUXILIARY_TASKS, TrainConfig
from aang_core.corpora.task_files import TaskFiles
from aang_core.errors import ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.recipes import find_recipe
from aang_core.objectives.space import load_space
from aang_core.objectives.stages import ReadReport
from aang_core.plugins.name_table import did_you_mean
from aang_core.plugins.primitive import Primitive
from aang_core.plugins.registry import Registry
from aang_core.tasks.weighting import require_several_draws


@dataclass(frozen=True)
class Composition:
    """The weighter, the objectives and the stages of pre-training that the options name."""

    weighter: Primitive
    objectives: Sequence[Objective]
    stages: Sequence[PretrainingStage]
    auxiliary: Sequence[str]

    @property
    def composed(self) -> list[Objective]:
        """All objectives, those of the stages too."""
        return [*self.objectives, *(stage.objective for stage in self.stages)]

    @property
    def owners(self) -> dict[str, Primitive | None]:
        """What has options, by name."""
        owners: dict[str, Primitive | None] = {self.weighter.key: self.weighter}
        owners |= {p.key: p for objective in self.composed for p in objective.primitives}
        # The columns of auxiliary tasks are options too, even if the run trains the end task alone.
        others = (*self.auxiliary, *(stage.name for stage in self.stages))
        return {**owners, **{name: owners.get(name) for name in others}}


def compose(config: TrainConfig, registry: Registry, report: ReadReport) -> Composition:
    """Look up everything that the options name, before any data is read or a model is loaded.

    Args:
        config: the run's options.
        registry: where names are looked up.
        report: collects notes.

    Raises:
        AangError: a name is unknown or ambiguous, or a weighter cannot be imported.
    """
    weighter = registry.weighter(config.weighter)
    draws = config.draws_per_step
    require_several_draws(
        *(weighter.load(), draws, f"--draws-per-step {draws}"),
        called=f"--weighter {config.weighter}",
    )
    auxiliary = auxiliary_files(config)
    registry = with_auxiliary_data(registry, auxiliary)
    objectives = _objectives(config, registry, auxiliary, report)
    if not getattr(weighter.load(), "uses_auxiliaries", True):
        objectives = []
    return Composition(weighter, objectives, _stages(config, registry), list(config.aux_task))


def option_owners(config: TrainConfig, registry: Registry) -> dict[str, Primitive | None]:
    """What may have options in a run: its weighter, primitives, stages and auxiliary tasks.

    No data is read and no model is loaded.

    Args:
        config: the run's options; those in ``set`` are ignored.
        registry: where names are looked up.

    Returns:
        By name, the primitive or weighter; None for an auxiliary task and a pre-training stage.

    Raises:
        AangError: a name is unknown or ambiguous, or a primitive cannot be imported.
    """
    return compose(config, registry, ReadReport()).owners


def check_settings(config: TrainConfig, composition: Composition) -> None:
    """Check that the run uses every name that ``set`` gives options to.

    Raises:
        ConfigError: it does not use one of them.
    """
    used = composition.owners
    for name in config.set:
        if name not in used:
            hint = did_you_mean(name, used, "it uses")
            raise ConfigError(
                f"--set {name}.…: this run uses no primitive or weighter {name!r}; {hint}"
            )


def _objectives(
    config: TrainConfig, registry: Registry, auxiliary: Sequence[TaskFiles], report: ReadReport
) -> list[Objective]:
    """The legal objectives of the space, and one for each auxiliary task that it does not read."""
    if config.space == AUXILIARY_TASKS and auxiliary:
        return supervised_objectives(registry, auxiliary)
    space = load_space(config.space, registry)
    if not space.objectives:
        hint = "; ".join([f"aang show-space {config.space} says why", *space.notes])
        raise ConfigError(
            f"--space {config.space}: none of its {len(space.combinations)} combinations is legal; "
            f"{hint}"
        )
    for note in space.notes:
        report.note(note)
    return [*space.objectives, *supervised_objectives(registry, auxiliary, space.objectives)]


def _stages(config: TrainConfig, registry: Registry) -> list[PretrainingStage]:
    """The recipe's stages of pre-training."""
    if not config.recipe:
        return []
    recipe = find_recipe(config.recipe, registry)
    theirs = registry.as_meant_by(recipe.origin.distribution)
    return [
        PretrainingStage(name, Objective.parse(name, theirs), stage_settings(name, config))
        for name in recipe.pretraining
    ]
