"""The options of ``aang train``: one schema for the command line and for configuration files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aang_core.errors import ConfigError
from aang_core.training.evaluation import Metric

Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class TrainConfig(BaseModel):
    """A training run, fully resolved; the papers' values where the papers give one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: Path | None = None
    dev: Path | None = None
    test: Path | None = None
    dataset: str | None = None
    text: str = "text"
    text_pair: str | None = None
    label: str = "label"
    dev_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1
    domain: tuple[str, ...] = ()

    model: str | None = None
    from_scratch: bool = False
    max_length: Positive = 128
    dropout: Fraction | None = None
    share_decoder: bool = True

    space: str = "td"
    weighter: str = "factored"
    set: dict[str, dict[str, Any]] = {}

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    steps: Positive = 400
    eval_every: Positive = 25
    patience: Positive = 8
    metric: Metric = "macro-f1"
    batch_size: Positive = 32
    dev_batch_size: Positive = 32
    aux_batch_size: Positive = 32

    lr: Rate = 1e-4
    head_lr: Rate = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup: Fraction = 0.06
    max_grad_norm: Rate = 1.0

    dev_head: Literal["fresh", "end-task"] = "fresh"
    dev_head_steps: Positive = 10
    dev_head_lr: Rate = 1e-2
    dev_head_weight_decay: Annotated[float, Field(ge=0)] = 0.1
    meta_fraction: Fraction = 0.0

    device: str = "auto"
    out: Path | None = None

    @property
    def is_demo(self) -> bool:
        """Whether the built-in demo task is trained, because no data was named."""
        return self.train is None and self.dataset is None

    @model_validator(mode="after")
    def _data_is_named_once(self) -> "TrainConfig":
        if self.train is not None and self.dataset is not None:
            raise ValueError("--train and --dataset both name the end task; give one of them")
        if self.is_demo and (self.dev is not None or self.test is not None):
            raise ValueError("--dev and --test need --train")
        return self


DEMO_DEFAULTS: Mapping[str, Any] = {"lr": 3e-4, "head_lr": 3e-4}
"""What the built-in demo sets otherwise, chosen on its dev set; any option overrides it."""


def resolve_config(from_file: Mapping[str, Any], from_options: Mapping[str, Any]) -> TrainConfig:
    """Options over the configuration file over the defaults.

    Raises:
        ConfigError: an unknown key or a value that does not fit; the message names each.
    """
    given = {**from_file, **from_options}
    given["set"] = _merge(from_file.get("set") or {}, from_options.get("set") or {})
    is_demo = given.get("train") is None and given.get("dataset") is None
    try:
        return TrainConfig.model_validate({**(DEMO_DEFAULTS if is_demo else {}), **given})
    except ValidationError as error:
        raise ConfigError("; ".join(_sentence(e) for e in error.errors())) from error


def _merge(base: Any, over: Mapping[str, Mapping[str, Any]]) -> Any:
    if not isinstance(base, Mapping) or not all(isinstance(v, Mapping) for v in base.values()):
        return base
    return {name: {**base.get(name, {}), **over.get(name, {})} for name in {**base, **over}}


def _sentence(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    if not where:
        return message
    if error["type"] == "extra_forbidden":
        return f"unknown option {where!r}; see aang train --help"
    return f"option {where} = {error['input']!r}: {message}"
