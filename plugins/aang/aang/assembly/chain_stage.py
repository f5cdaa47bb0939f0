"""A stage of continued pre-training: its objective and its settings."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang.config import TrainConfig
from aang_core.errors import ConfigError
from aang_core.objectives.objective import Objective


class StageSettings(BaseModel):
    """How long and how fast a stage trains; by default as the fine-tuning after it.

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


def stage_settings(name: str, config: TrainConfig) -> StageSettings:
    """The settings of the stage ``name``: those of ``--set NAME.…``, then those of the run.

    Raises:
        ConfigError: a stage has no such option, or its value is invalid.
    """
    given = config.set.get(name, {})
    base = {option: getattr(config, option) for option in StageSettings.model_fields}
    base["head_lr"] = given.get("lr", config.lr)
    try:
        return StageSettings.model_validate({**base, **given})
    except ValidationError as error:
        wrong = error.errors()[0]
        option = ".".join(str(part) for part in wrong["loc"])
        known = ", ".join(StageSettings.model_fields)
        raise ConfigError(
            f"--set {name}.{option}: {wrong['msg']}; a stage of pre-training has the options "
            f"{known}"
        ) from error
