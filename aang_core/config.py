"""The options of ``aang train``: one schema for the command line and for configuration files."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from aang_core.corpora.names import plain_name, task_name
from aang_core.errors import ConfigError
from aang_core.recipes import RECIPES, find_recipe
from aang_core.training.evaluation import Metric
from aang_core.yaml_source import NumberLoader, parse_yaml

_TASK_NAME = re.compile(r"[a-z0-9-]+")

AUXILIARY_TASKS = "aux-tasks"
"""The space of the auxiliary tasks alone, each predicting its labels from its text."""


class TrainConfig(BaseModel):
    """A training run, fully resolved; the papers' values where the papers give one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: Path | None = Field(
        None, description="labelled training data: .jsonl, .json, .csv, .tsv or .parquet"
    )
    dev: Path | None = Field(None, description="labelled dev data; without it split off --train")
    test: Path | None = Field(None, description="labelled test data, for the final score alone")
    dataset: str | None = Field(
        None, description="name or folder of a Hugging Face dataset, instead of --train"
    )
    text: str = Field("text", description="column of the text")
    text_pair: str | None = Field(None, description="column of the second text, for pairs")
    label: str = Field("label", description="column of the label")
    dev_fraction: float = Field(
        0.1,
        gt=0,
        le=0.5,
        description="part of the training data that becomes dev if no dev data is given",
    )
    aux_task: dict[str, Path] = Field(
        {}, description="further labelled data as NAME=FILE, whose own labels are an objective"
    )
    target: str | None = Field(
        None, description="task to train for, if it is not that of --train but an --aux-task"
    )
    domain: tuple[str, ...] = Field(
        (), description="file, folder or glob of in-domain text, for the data primitive s2orc"
    )

    out_of_domain: tuple[str, ...] = Field(
        (), description="file, folder or glob of generic text, for the data primitive out-of-domain"
    )

    model: str | None = Field(
        None, description="folder or hub name of the encoder; default: the demo's small encoder"
    )
    # Left out of every file that is written, so that no file can ask for it.
    trust_remote_code: bool = Field(
        False,
        exclude=True,
        description="run the Python code that comes with the model, for models that have some",
    )
    from_scratch: bool = Field(False, description="ignore the encoder's weights")
    max_length: int = Field(128, gt=1, description="tokens a text is cut to")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout everywhere; default: the encoder's own"
    )
    share_decoder: bool = Field(
        True, description="objectives share one vocabulary decoder instead of copying it"
    )

    recipe: str | None = Field(
        None, description="a baseline by name, which sets other options: " + ", ".join(RECIPES)
    )
    space: str = Field(
        "td",
        description="space of objectives: a name or a YAML file; with --aux-task and without this, "
        "those tasks alone",
    )
    weighter: str = Field("factored", description="how objectives are weighted")
    set: dict[str, dict[str, Any]] = Field(
        {}, description="option of a primitive or weighter, such as factored.lr=0.5"
    )

    seed: int = Field(0, ge=0, lt=2**63, description="seed of every random draw")
    steps: int = Field(400, gt=0, description="budget of training steps")
    eval_every: int = Field(25, gt=0, description="steps between evaluations on dev")
    patience: int = Field(8, gt=0, description="evaluations without a better dev score to stop at")
    metric: Metric = Field("macro-f1", description="dev score that the best model is chosen by")
    batch_size: int = Field(32, gt=0, description="end-task rows a step")
    dev_batch_size: int = Field(32, gt=0, description="dev rows a step, for the dev gradient")
    aux_batch_size: int = Field(
        32, gt=0, description="rows a step of all sampled objectives together"
    )

    lr: float = Field(1e-4, gt=0, allow_inf_nan=False, description="learning rate of the body")
    head_lr: float = Field(1e-3, gt=0, allow_inf_nan=False, description="learning rate of heads")
    weight_decay: float = Field(
        0.01, ge=0, allow_inf_nan=False, description="weight decay of AdamW, on matrices"
    )
    warmup: float = Field(0.06, ge=0, lt=1, description="part of the steps that warm up")
    max_grad_norm: float = Field(1.0, gt=0, description="norm that the gradient is clipped to")

    dev_head: Literal["fresh", "remembered", "end-task"] = Field(
        "fresh",
        description="head of the dev gradient: fitted afresh each step to the step's rows, or to "
        "those of the steps before, or the end task's own",
    )
    dev_head_memory: int = Field(
        8, gt=0, description="how many steps a remembered dev head is fitted to"
    )
    dev_head_steps: int = Field(10, gt=0, description="AdamW steps that fit the fresh dev head")
    dev_head_lr: float = Field(
        1e-2, gt=0, allow_inf_nan=False, description="learning rate that fits the dev head"
    )
    dev_head_weight_decay: float = Field(
        0.1, ge=0, description="weight decay that fits the dev head"
    )
    meta_fraction: float = Field(
        0.0, ge=0, lt=1, description="part of dev that is held out for the dev gradient alone"
    )

    gradients: Literal["auto", "stream", "packed"] = Field(
        "auto",
        description="engine of the gradient signals: stream takes one task at a time, packed all "
        "together; auto is packed on an accelerator, else stream",
    )
    meta_every: int = Field(1, gt=0, description="measure gradient signals each so many steps")
    micro_batch_size: int | None = Field(
        None, gt=0, description="most rows in one pass through the body; results stay exact"
    )
    on_nan: Literal["stop", "skip"] = Field(
        "stop",
        description="what to do about a step whose loss or gradient is NaN or infinite: stop with "
        "what was trained before it, or skip it",
    )
    save_memory: bool = Field(
        False,
        description="keep the activations of one layer at a time, and compute the others again in "
        "the backward pass",
    )
    precision: Literal["fp32", "bf16", "fp16"] = Field(
        "fp32",
        description="what training's forward passes compute in; parameters and signals stay in "
        "fp32, and fp16 scales its losses",
    )
    compile: bool = Field(
        False, description="let torch.compile make kernels of the encoder; takes a C++ compiler"
    )
    device: str = Field(
        "auto", description="torch device; auto takes an accelerator if there is one"
    )
    log: tuple[str, ...] = Field(
        (), description="tracker for scalars, such as tensorboard or wandb, through accelerate"
    )
    checkpoint_every: float = Field(
        120.0, ge=0, description="seconds between checkpoints; 0 takes one after every round"
    )
    out: Path | None = Field(None, description="the run's folder; default: a new one under runs/")

    @property
    def is_demo(self) -> bool:
        """Whether the built-in demo task is trained, because no data was named."""
        return self.train is None and self.dataset is None and self.target is None

    @property
    def task_name(self) -> str:
        """What the end task is called if ``--target`` does not say so."""
        if self.train is not None:
            return task_name(self.train)
        return "demo" if self.dataset is None else plain_name(Path(self.dataset).name)

    @field_validator("*", mode="before")
    @classmethod
    def _names_that_can_be(cls, value: Any) -> Any:
        """Refuse what no file can be called, wherever a text stands."""
        for text in _texts_in(value):
            if "\0" in text:
                raise ValueError(f"{text!r:.60} holds a null character")
            if any("\ud800" <= c <= "\udbff" for c in text):
                raise ValueError(f"{text!r:.60} holds half a surrogate pair")
            if any(len(part) > 255 for part in text.split("/")):
                raise ValueError(f"{text!r:.60}… is longer than any name can be")
        return value

    @model_validator(mode="after")
    def _data_is_named_once(self) -> "TrainConfig":
        if self.train is not None and self.dataset is not None:
            raise ValueError("--train and --dataset both name the end task; give one of them")
        if self.train is None and (self.dev is not None or self.test is not None):
            raise ValueError("--dev and --test are files that go with --train; give that too")
        return self

    @field_validator("aux_task")
    @classmethod
    def _names_of_tasks(cls, tasks: dict[str, Path]) -> dict[str, Path]:
        for name in tasks:
            if not _TASK_NAME.fullmatch(name):
                raise ValueError(
                    f"the name {name!r} must be of lower-case letters, digits and hyphens"
                )
        return tasks


def _texts_in(value: Any) -> Iterator[str]:
    """All texts in nested lists and mappings, keys included."""
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _texts_in(pair)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


DEMO_DEFAULTS: Mapping[str, Any] = {"lr": 3e-4, "head_lr": 3e-3, "steps": 300}
"""What the built-in demo sets otherwise, chosen on its dev set; any option overrides it."""


def resolve_config(from_file: Mapping[str, Any], from_options: Mapping[str, Any]) -> TrainConfig:
    """Options over the configuration file over the defaults.

    Raises:
        ConfigError: an unknown key or a value that does not fit; the message names each.
    """
    given = {**from_file, **from_options}
    given["set"] = _merge(from_file.get("set") or {}, from_options.get("set") or {})
    if given.get("recipe") is not None:
        given = {**find_recipe(str(given["recipe"])).options, **given}
    if given.get("aux_task") and given.get("space") is None:
        given["space"] = AUXILIARY_TASKS
    is_demo = all(given.get(name) is None for name in ("train", "dataset", "target"))
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
    option = f"--{where.replace('_', '-')}"
    if error["type"] == "extra_forbidden":
        return f"{where}: there is no such option; aang train --help lists them"
    return f"{option} {error['input']!r}: {message[:1].lower()}{message[1:]}"


def read_config_file(path: Path) -> dict[str, Any]:
    """The options that a YAML configuration file holds; dashes in names count as underscores.

    Raises:
        ConfigError: no such file, or not a mapping in YAML; the message names the line.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error}") from error
    content, _ = parse_yaml(written, str(path), NumberLoader)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{path}: must hold options by name, such as 'weighter: factored'")
    options = {key.replace("-", "_"): value for key, value in content.items()}
    refuse_trust(options, str(path))
    return options


def refuse_trust(options: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError where a file asks for the code of a model to be run.

    Who wrote the file need not be who runs it.
    """
    if "trust_remote_code" in options:
        raise ConfigError(
            f"{where}: trust_remote_code cannot be asked for in a file; give --trust-remote-code "
            "on the command line if you trust the authors of the model"
        )
