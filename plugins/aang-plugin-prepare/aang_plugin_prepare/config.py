"""The options of ``aang prepare-encoder``: one schema for the command line and for resuming."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from aang.config import validated
from aang.config.schema import ComputingOptions, LoadingOptions, OptimizerOptions, Section
from aang.config.values import Positive, Rate, Settings, Several
from aang.corpora.places import from_home
from pydantic import Field, model_validator

DEFAULT_MINUTES = 30.0
"""How long an encoder is trained without ``--minutes`` and ``--steps``."""


class _TextOptions(Section):
    """What is read, and what is written."""

    model: str
    text: Several = Field(
        (), description="file, folder or glob of unlabelled text, as for --domain of aang train"
    )
    out: Path = Field(description="folder for the prepared encoder")
    set: Settings = Field({}, description="option of a primitive, such as s2orc.language=en")


class PreparationConfig(ComputingOptions, OptimizerOptions, LoadingOptions, _TextOptions):
    """The resolved options of a preparation.

    Attributes:
        adam_eps: ε of AdamW, which is no option here.
    """

    adam_eps: ClassVar[float] = 1e-8

    minutes: Rate | None = Field(
        None, description=f"minutes to train; default: {DEFAULT_MINUTES:g} if --steps is not given"
    )
    steps: Positive | None = Field(None, description="training steps, instead of --minutes")
    batch_size: Positive = Field(64, description="rows a step")
    max_length: int = Field(64, gt=1, description="tokens of a row; longer texts give several rows")
    lr: Rate = Field(2e-4, description="learning rate of the body")
    head_lr: Rate = Field(1e-3, description="learning rate of the language-model head")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of every random draw")
    eval_every: Positive = Field(100, description="steps between looks at held-out text")

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
    return validated(PreparationConfig, options, "aang prepare-encoder")
