"""The options of ``aang train``: one schema for the command line and for configuration files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aang.corpora.names import REST, plain_name, task_name
from aang.task_types.names import TaskTypeName
from aang_core.objectives.defaults import DEFAULT_RECIPE, DEFAULT_SPACE, DEFAULT_WEIGHTER
from aang_core.storage.nested import leaves
from aang_core.tasks.saved import LARGEST
from aang_core.training.evaluation import Metric

_TASK_NAME = re.compile(r"[a-z0-9-]+")

ROWS = ("batch_size", "dev_batch_size", "aux_batch_size")
"""The options for the number of rows per step, which ``scale_rows`` scales."""


LARGEST_NUMBER = 10**9
"""Largest whole number that an option takes, but for seeds; products of two fit into 64 bits."""

HUB = ("hub_private", "hub_license", "hub_language")
"""The options that say how ``push_to_hub`` pushes."""


def _in_a_list(value: Any) -> Any:
    if isinstance(value, str | Path):
        return (str(value),)
    if isinstance(value, list | tuple):
        return tuple(str(item) if isinstance(item, Path) else item for item in value)
    return value


Several = Annotated[tuple[str, ...], BeforeValidator(_in_a_list)]
"""Texts, such as files, folders and globs; in a file a single one need not be in a list."""


def _at_commas(value: Any) -> Any:
    """Names in a list, or in one text with commas between them; ``1`` in YAML is the name 1."""
    items = value if isinstance(value, list | tuple) else [value]
    names = tuple(str(item).strip() for item in items)
    if len(names) == 1:
        names = tuple(name.strip() for name in names[0].split(","))
    if "" in names or len(set(names)) < len(names):
        raise ValueError("every class needs a name of its own")
    return names


BALANCED: Literal["balanced"] = "balanced"
"""The value of ``--class-weights`` that takes the inverse of each class's number of rows."""


def _by_class(value: Any) -> Any:
    """Class weights with names as labels are read: a class ``1`` in YAML is the class ``"1"``."""
    return {str(name): v for name, v in value.items()} if isinstance(value, Mapping) else value


ClassWeights = Annotated[
    dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | Literal["balanced"] | None,
    BeforeValidator(_by_class),
]
"""The weight of each class, or ``balanced``."""


class TrainConfig(BaseModel):
    """The resolved options of a training run.

    The defaults suit small machines and small tasks. The settings of the paper are in the recipes
    ``aang-td`` and ``aang-td+ed``, which set the options that differ.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: Path | None = Field(
        None, description="labelled training data: .jsonl, .json, .csv, .tsv or .parquet"
    )
    dev: Path | None = Field(None, description="labelled dev data; by default split off --train")
    test: Path | None = Field(None, description="labelled test data, used only for the final score")
    test_score: bool = Field(
        True,
        description="score the best model on test; without it the run has no test set",
    )
    dataset: str | None = Field(
        None, description="name or folder of a Hugging Face dataset, instead of --train"
    )
    text: str = Field("text", description="column of the text")
    text_pair: str | None = Field(None, description="column of the second text, for pairs")
    label: str = Field("label", description="column of the label")
    task_type: TaskTypeName | None = Field(
        None, description="what a label is; default: chosen from the labels of --train"
    )
    label_names: Annotated[tuple[str, ...], BeforeValidator(_at_commas)] = Field(
        (),
        description="names of the classes, with commas between them, where labels are zeros and "
        "ones; default: their places",
    )
    skip_bad_rows: bool = Field(
        False,
        description="leave out labelled rows that lack a text or a label; without this they are an "
        "error",
    )
    dev_fraction: float = Field(
        0.1,
        gt=0,
        le=0.5,
        description="part of the training data that becomes dev if no dev data is given",
    )
    train_rows: int | None = Field(
        None,
        gt=0,
        description="training rows, drawn by class with the seed; default: all",
    )
    aux_task: dict[str, Path] = Field(
        {}, description="further labelled data as NAME=FILE, whose own labels are an objective"
    )
    target: str | None = Field(
        None, description="task to train for, if it is not that of --train but an --aux-task"
    )
    domain: Several = Field((), description="file, folder or glob of in-domain text")
    out_of_domain: Several = Field((), description="file, folder or glob of generic text")
    unlabelled: Several = Field(
        (),
        description="file, folder or glob of texts like the end task's own, without labels; "
        f"{REST} is the training rows that --train-rows leaves out",
    )

    model: str | None = Field(
        None, description="folder or hub name of the encoder; default: the demo's small encoder"
    )
    # Excluded from every file that is written, so that no file can ask for it.
    trust_remote_code: bool = Field(
        False,
        exclude=True,
        description="run the Python code that comes with the model, for models that have some",
    )
    from_scratch: bool = Field(False, description="ignore the encoder's weights")
    allow_missing_weights: bool = Field(
        False,
        description="initialise weights of the encoder that its folder lacks at random; without "
        "this they are an error",
    )
    max_length: int = Field(128, gt=1, description="tokens a text is cut to")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout everywhere; default: the encoder's own"
    )
    head_dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="dropout in the end task's head and the objectives' classification heads; "
        "default: as in the rest of the encoder",
    )
    share_decoder: bool = Field(
        True, description="objectives share one vocabulary decoder instead of copying it"
    )
    lora: int | None = Field(
        None,
        gt=0,
        description="rank of low-rank adapters, which are trained instead of the encoder's weights",
    )
    lora_alpha: int | None = Field(
        None, gt=0, description="α of the adapters, which are scaled by α/rank; default: 2·rank"
    )
    lora_target: Several = Field(
        (),
        description="linear layers that get an adapter, by the end of their names, or all-linear; "
        "default: peft's choice for the architecture",
    )
    freeze_layers: int | None = Field(
        None, ge=0, description="number of first layers to freeze, with the embeddings"
    )

    recipe: str | None = Field(
        None,
        description="a system or baseline by name, which sets other options; default: "
        f"{DEFAULT_RECIPE}, if none of --space, --weighter and --aux-task is given",
    )
    space: str = Field(
        DEFAULT_SPACE,
        description="space of objectives: a name or a YAML file; default: "
        f"{DEFAULT_SPACE} with --weighter, the tasks alone with --aux-task",
    )
    weighter: str = Field(
        DEFAULT_WEIGHTER,
        description="how objectives are weighted; default: "
        f"{DEFAULT_WEIGHTER} with --space or --aux-task",
    )
    set: dict[str, dict[str, Any]] = Field(
        {}, description="option of a primitive or weighter, such as factored.lr=0.5"
    )

    seed: int = Field(0, ge=0, lt=2**63, description="seed of every random draw")
    steps: int = Field(400, gt=0, description="budget of training steps")
    eval_every: int = Field(25, gt=0, description="steps between evaluations on dev")
    patience: int = Field(
        8, gt=0, description="stop after this many evaluations without a better one"
    )
    metric: Metric = Field(
        "macro-f1",
        description="dev score that selects the best model; default: macro-f1, for numbers "
        "spearman, for spans entity-f1",
    )
    class_weights: ClassWeights = Field(
        None,
        description="weight of a class in the end task's loss as NAME=WEIGHT, or balanced for the "
        "inverse of its number of training rows",
    )
    balanced_rows: bool = Field(
        False, description="draw the end task's training rows so that classes come equally often"
    )
    batch_size: int = Field(32, gt=0, description="end-task rows per step")
    dev_batch_size: int = Field(32, gt=0, description="dev rows per step, for the dev gradient")
    aux_batch_size: int = Field(
        32, gt=0, description="rows per step of all sampled objectives together"
    )
    scale_rows: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="factor for those of the three batch sizes that are not given; rounded to the "
        "nearest row, at least one",
    )
    draws_per_step: int = Field(
        1,
        gt=0,
        description="draws of objectives and rows per step; they share its rows",
    )

    lr: float = Field(1e-4, gt=0, allow_inf_nan=False, description="learning rate of the body")
    head_lr: float = Field(1e-3, gt=0, allow_inf_nan=False, description="learning rate of heads")
    weight_decay: float = Field(
        0.01, ge=0, allow_inf_nan=False, description="weight decay of AdamW, on matrices"
    )
    head_weight_decay: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="weight decay of heads; default: as the body's"
    )
    adam_eps: float = Field(1e-8, gt=0, allow_inf_nan=False, description="ε of AdamW")
    warmup: float = Field(
        0.06, ge=0, lt=1, description="part of the steps over which the learning rate rises"
    )
    max_grad_norm: float = Field(1.0, gt=0, description="norm that the gradient is clipped to")
    final_fine_tuning: int | None = Field(
        None,
        gt=0,
        description="at most this many epochs on the end task alone, from the best model, at a "
        "learning rate of 1e-6; kept only if better on dev",
    )

    clip_apart: bool = Field(
        False, description="clip the gradients of body and heads separately to that norm"
    )
    task_clip: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="norm that each task's gradient over the body is clipped to before it is "
        "weighted; default: no limit",
    )

    dev_head: Literal["remembered", "drawn", "own-rows", "end-task"] = Field(
        "remembered",
        description="head of the dev gradient: fitted to end-task rows of earlier steps, to rows "
        "drawn for it, or to the step's own; or the end task's own head",
    )
    dev_head_rows: int = Field(
        256, gt=0, description="number of remembered or drawn rows that the dev head is fitted to"
    )
    dev_head_fit: Literal["adamw", "logistic"] = Field(
        "adamw",
        description="how it is fitted: a few iterations of AdamW, or a penalised logistic "
        "regression",
    )
    dev_head_steps: int = Field(10, gt=0, description="maximum AdamW iterations of that fit")
    dev_head_lr: float = Field(
        1e-2, gt=0, allow_inf_nan=False, description="learning rate of that fit"
    )
    dev_head_weight_decay: float = Field(0.1, ge=0, description="weight decay of that fit")
    dev_average: float = Field(
        0.0, ge=0, lt=1, description="decay of the running mean of the dev gradient over steps"
    )
    meta_fraction: float = Field(
        0.0, ge=0, lt=1, description="part of dev that is reserved for what weighters learn from"
    )

    gradients: Literal["auto", "stream", "packed"] = Field(
        "auto",
        description="engine of the gradient signals: stream takes one task at a time, packed all "
        "together; auto is packed on an accelerator, else stream",
    )
    meta_every: int = Field(1, gt=0, description="measure gradient signals every this many steps")
    weights_every: int = Field(
        1,
        gt=0,
        description="update the weights every this many measured steps, from their mean signals",
    )
    micro_batch_size: int | None = Field(
        None, gt=0, description="maximum rows in one pass through the body; the step stays the same"
    )
    on_nan: Literal["stop", "skip"] = Field(
        "stop",
        description="what to do with a step whose loss or gradient is NaN or infinite: stop, with "
        "a checkpoint of the state before it, or skip it",
    )
    save_memory: bool = Field(
        False,
        description="keep the activations of one layer at a time and recompute the others in the "
        "backward pass",
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto",
        description="precision of training's forward passes and dev scores; parameters, signals "
        "and the result's scores stay in fp32, and fp16 scales its losses; auto is bf16 where the "
        "device has instructions for it, else fp32",
    )
    compile: bool = Field(
        False, description="compile the encoder with torch.compile; needs a C++ compiler"
    )
    device: str = Field(
        "auto", description="torch device; auto takes an accelerator if there is one"
    )
    log: Several = Field(
        (), description="tracker for scalars, such as tensorboard or wandb, through accelerate"
    )
    checkpoint_every: float = Field(
        120.0, ge=0, description="seconds between checkpoints; 0 takes one after every round"
    )
    out: Path | None = Field(None, description="the run's folder; default: a new one under runs/")
    push_to_hub: str | None = Field(
        None, description="name on the Hugging Face hub to push the finished model to"
    )
    hub_private: bool = Field(False, description="only you can see the pushed model")
    hub_license: str | None = Field(
        None, description="licence of the pushed model, such as mit; default: the encoder's own"
    )
    hub_language: Several = Field(
        (), description="language of the pushed model, such as en; default: the encoder's own"
    )

    @property
    def is_demo(self) -> bool:
        """Whether the built-in demo task is trained, because no data was given."""
        return self.train is None and self.dataset is None and self.target is None

    @property
    def task_name(self) -> str:
        """The name of the end task unless ``--target`` names another one."""
        if self.train is not None:
            return task_name(self.train)
        return "demo" if self.dataset is None else plain_name(Path(self.dataset).name)

    @field_validator("*", mode="before")
    @classmethod
    def _names_and_numbers_that_can_be(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse text in any option that could not be part of a file name."""
        # Options of plug-ins may be seeds, too.
        most = LARGEST if info.field_name in ("seed", "set") else LARGEST_NUMBER
        if any(isinstance(leaf, int) and abs(leaf) > most for leaf in leaves(value)):
            raise ValueError(f"a number is more than any run can need; give at most {most:,}")
        parts = leaves(value, keys=True)
        for text in (str(part) for part in parts if isinstance(part, str | Path)):
            if "\0" in text:
                raise ValueError(f"{text!r:.60} holds a null character")
            if any("\ud800" <= c <= "\udbff" for c in text):
                raise ValueError(f"{text!r:.60} holds half a surrogate pair")
            if any(len(part) > 255 for part in text.split("/")):
                raise ValueError(f"{text!r:.60}… is longer than any name can be")
        return value

    @field_validator(
        "train", "dev", "test", "dataset", "aux_task", "model", "space", "out", mode="before"
    )
    @classmethod
    def _paths_from_home(cls, value: Any) -> Any:
        """Replace ``~``, which no shell does in ``--train=~/x``, and take paths for names too."""
        match value:
            case Mapping():
                return {name: cls._paths_from_home(part) for name, part in value.items()}
            case str() | Path() if str(value).startswith("~"):
                try:
                    return str(Path(value).expanduser())
                except RuntimeError as error:
                    raise ValueError(
                        f"{value}: there is no such home folder; give the path"
                    ) from error
            case Path():
                return str(value)
        return value

    @model_validator(mode="after")
    def _data_is_named_once(self) -> "TrainConfig":
        if self.train is not None and self.dataset is not None:
            raise ValueError("--train and --dataset both name the end task; give one of them")
        if self.label_names and self.is_demo:
            raise ValueError("--label-names goes with --train or --dataset; give one of them")
        if self.train is None and (self.dev is not None or self.test is not None):
            raise ValueError("--dev and --test are files that go with --train; give that too")
        return self

    @model_validator(mode="after")
    def _adapters_have_a_rank(self) -> "TrainConfig":
        if self.lora is None and (self.lora_alpha is not None or self.lora_target):
            option = "--lora-alpha" if self.lora_alpha is not None else "--lora-target"
            raise ValueError(f"{option} goes with --lora RANK; give that too")
        return self

    @model_validator(mode="after")
    def _what_is_fixed_has_learned(self) -> "TrainConfig":
        random = {
            "--from-scratch": self.from_scratch,
            "--allow-missing-weights": self.allow_missing_weights,
        }
        for option, given in (("--lora", self.lora), ("--freeze-layers", self.freeze_layers)):
            for made in (name for name, asked in random.items() if asked and given is not None):
                raise ValueError(
                    f"{option} {given} never trains some of the weights, and {made} makes them at "
                    "random; leave one of them out"
                )
        return self

    @model_validator(mode="after")
    def _rest_is_left_by_a_draw(self) -> "TrainConfig":
        if REST in self.unlabelled and self.train_rows is None:
            raise ValueError(
                f"--unlabelled {REST} is the training rows that --train-rows leaves out; give that "
                f"too. A file of that name is ./{REST}"
            )
        return self

    @model_validator(mode="after")
    def _only_what_is_pushed_has_a_licence(self) -> "TrainConfig":
        given = [name for name in HUB if getattr(self, name)]
        if given and self.push_to_hub is None:
            option = given[0].replace("_", "-")
            raise ValueError(f"--{option} is about a model that is pushed; give --push-to-hub too")
        return self

    @model_validator(mode="after")
    def _classes_are_balanced_once(self) -> "TrainConfig":
        if self.balanced_rows and self.class_weights == BALANCED:
            raise ValueError(
                "--balanced-rows and --class-weights balanced both make up for classes of unequal "
                "size, and together would do it twice; give one of them"
            )
        return self

    @model_validator(mode="after")
    def _every_draw_has_rows(self) -> "TrainConfig":
        for name in ROWS:
            if getattr(self, name) < self.draws_per_step:
                option = name.replace("_", "-")
                raise ValueError(
                    f"--{option} {getattr(self, name)} is less than one row for each of the "
                    f"--draws-per-step {self.draws_per_step}; give more rows or fewer draws"
                )
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
