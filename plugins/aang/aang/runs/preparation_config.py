"""The options of ``aang prepare-encoder``: one schema for the command line and for resuming."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aang.config import sentence
from aang.corpora.matching import from_home
from aang_core.errors import ConfigError

DEFAULT_MINUTES = 30.0
"""How long an encoder is trained without ``--minutes`` and ``--steps``."""


class PreparationConfig(BaseModel):
    """The resolved options of a preparation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    text: tuple[str, ...] = Field(
        (),
        description="file, folder or glob of unlabelled text, as for --domain of aang train",
    )
    out: Path = Field(description="folder for the prepared encoder")
    set: dict[str, dict[str, Any]] = Field(
        {}, description="option of a primitive, such as s2orc.language=en"
    )
    # Left out of every file that is written, so that no file can ask for it.
    trust_remote_code: bool = Field(
        False,
        exclude=True,
        description="run the Python code that comes with the model, for models that have some",
    )

    allow_missing_weights: bool = Field(
        False,
        description="initialise weights of the encoder that its folder lacks at random; without "
        "this they are an error",
    )

    minutes: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description=f"minutes to train; default: {DEFAULT_MINUTES:g} if --steps is not given",
    )
    steps: int | None = Field(None, gt=0, description="training steps, instead of --minutes")
    batch_size: int = Field(64, gt=0, description="rows a step")
    max_length: int = Field(64, gt=1, description="tokens of a row; longer texts give several rows")
    lr: float = Field(2e-4, gt=0, allow_inf_nan=False, description="learning rate of the body")
    head_lr: float = Field(
        1e-3, gt=0, allow_inf_nan=False, description="learning rate of the language-model head"
    )
    weight_decay: float = Field(
        0.01, ge=0, allow_inf_nan=False, description="weight decay of AdamW, on matrices"
    )
    warmup: float = Field(0.06, ge=0, lt=1, description="part of the training that warms up")
    max_grad_norm: float = Field(1.0, gt=0, description="norm that the gradient is clipped to")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of every random draw")
    eval_every: int = Field(100, gt=0, description="steps between looks at held-out text")

    micro_batch_size: int | None = Field(
        None, gt=0, description="most rows in one pass through the body; the step stays the same"
    )
    on_nan: Literal["stop", "skip"] = Field(
        "stop",
        description="what to do about a step whose loss or gradient is NaN or infinite: stop with "
        "what was trained before it, or skip it",
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto",
        description="what training's forward passes compute in; auto is bf16 where the device has "
        "instructions for it, else fp32",
    )
    device: str = Field(
        "auto", description="torch device; auto takes an accelerator if there is one"
    )
    checkpoint_every: float = Field(
        120.0, ge=0, description="seconds between checkpoints; 0 takes one after every step"
    )

    @model_validator(mode="after")
    def _one_budget(self) -> "PreparationConfig":
        if (self.minutes is None) == (self.steps is None):
            raise ValueError("--minutes and --steps both say how long to train; give one of them")
        return self

    @property
    def seconds(self) -> float | None:
        """How long to train, in seconds; None if ``steps`` is given."""
        return None if self.minutes is None else 60.0 * self.minutes


def from_anywhere(options: Mapping[str, Any]) -> dict[str, Any]:
    """Make the paths in the options absolute, so that a preparation resumes from any folder.

    Raises:
        DataError: a path begins with ``~NAME``, and there is no such home folder.
    """
    whole = dict(options)
    model = from_home(Path(whole["model"]), "--model")
    if model.is_dir():
        whole["model"] = str(model.absolute())
    places = (from_home(Path(place), "--text") for place in whole["text"])
    whole["text"] = tuple(str(place.absolute()) for place in places)
    return whole


def resolve_preparation(given: Mapping[str, Any]) -> PreparationConfig:
    """Add the defaults to the given options, and validate them.

    Raises:
        ConfigError: an option is unknown or its value is invalid; the message names each.
    """
    options = dict(given)
    if options.get("minutes") is None and options.get("steps") is None:
        options["minutes"] = DEFAULT_MINUTES
    try:
        return PreparationConfig.model_validate(options)
    except ValidationError as error:
        known = PreparationConfig.model_fields
        told = (sentence(e, "aang prepare-encoder", known) for e in error.errors())
        raise ConfigError("; ".join(told)) from error
