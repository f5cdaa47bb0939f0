"""The options of ``aang train`` in sections, each of which is what one part of a training reads.

On the command line, in configuration files and in Python the names are flat: a section is a frozen
model of its own, and :class:`TrainConfig` is all of them. A function takes the section that it
reads, and is given the whole. What is written below a field is its help.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aang.config.values import (
    BALANCED,
    LARGEST_NUMBER,
    ClassWeights,
    Decay,
    File,
    Name,
    Positive,
    Rate,
    Settings,
    Several,
    Share,
    at_commas,
)
from aang.corpora.columns import Columns
from aang.corpora.places import REST, plain_name, task_name
from aang.task_types.metrics import Metric
from aang_core.plugins.primitive import OptionEntry
from aang_core.plugins.registry import DEFAULT_WEIGHTER

DEFAULT_RECIPE = "contrast"
"""The recipe of ``aang train`` without a recipe, space, weighter and auxiliary task.

Defaults are fixed names that plug-ins register, not "whatever is installed and fits": installing a
plug-in must not change what a command trains, or the names of its weights. If the plug-in is
missing, the error says what to install.
"""

DEFAULT_SPACE = "td"
"""The default of ``--space``."""

_TASK_NAME = re.compile(r"[a-z0-9-]+")

ROWS = ("batch_size", "dev_batch_size", "aux_batch_size")
"""The options for the number of rows per step, which ``scale_rows`` scales."""


def _kinds(annotation: Any) -> set[Any]:
    """The types that an annotation is made of, such as int and None of ``int | None``."""
    inner = get_args(annotation)
    return {annotation}.union(*map(_kinds, inner))


class Section(BaseModel):
    """Options that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse ``steps: yes``, which Python would take for the number 1."""
        if isinstance(value, bool):
            kinds = _kinds(cls.model_fields[info.field_name or ""].annotation)
            if bool not in kinds and kinds & {int, float}:
                raise ValueError(f"should be a number, not {str(value).lower()}")
        return value


class DataOptions(Section):
    """The end task's data, and text without labels."""

    train: File | None = None
    """labelled training data: .jsonl, .json, .csv, .tsv or .parquet"""
    dev: File | None = Field(None, description="labelled dev data; by default split off --train")
    test: File | None = Field(None, description="labelled test data, used only for the final score")
    test_score: bool = True
    """score the best model on test; without it the run has no test set"""
    dataset: Name | None = None
    """name or folder of a Hugging Face dataset, or an end task of a plug-in, instead of --train"""
    text: str = Field("text", description="column of the text")
    text_pair: str | None = Field(None, description="column of the second text, for pairs")
    label: str = Field("label", description="column of the label")
    task_type: str | None = None
    """what a label is, single-label for one class or the name of another kind; default: chosen from
    the labels of --train"""
    label_names: Annotated[tuple[str, ...], BeforeValidator(at_commas)] = ()
    """names of the classes, with commas between them, where labels are zeros and ones; default:
    their places"""
    skip_bad_rows: bool = False
    """leave out labelled rows that lack a text or a label; without this they are an error"""
    dev_fraction: float = Field(0.1, gt=0, le=0.5)
    """part of the training data that becomes dev if no dev data is given"""
    train_rows: Positive | None = None
    """training rows, drawn by class with the seed; default: all"""
    aux_task: dict[str, File] = {}
    """further labelled data as NAME=FILE, whose own labels are an objective"""
    target: str | None = None
    """task to train for, if it is not that of --train but an --aux-task"""
    domain: Several = Field((), description="file, folder or glob of in-domain text")
    out_of_domain: Several = Field((), description="file, folder or glob of generic text")
    unlabelled: Several = Field(
        (),
        description="texts like the end task's own, without labels: a file, folder or glob, or "
        f"{REST} for the rows that --train-rows leaves out",
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

    @field_validator("aux_task")
    @classmethod
    def _names_of_tasks(cls, tasks: dict[str, Path]) -> dict[str, Path]:
        for name in tasks:
            if not _TASK_NAME.fullmatch(name):
                raise ValueError(
                    f"the name {name!r} must be of lower-case letters, digits and hyphens"
                )
        return tasks

    @model_validator(mode="after")
    def _data_is_named_once(self) -> "DataOptions":
        if self.train is not None and self.dataset is not None:
            raise ValueError("--train and --dataset both name the end task; give one of them")
        if self.label_names and self.is_demo:
            raise ValueError("--label-names goes with --train or --dataset; give one of them")
        Columns(self.text, self.text_pair, self.label).require_different()
        if self.train is None and (self.dev is not None or self.test is not None):
            raise ValueError("--dev and --test are files that go with --train; give that too")
        if REST in self.unlabelled and self.train_rows is None:
            raise ValueError(
                f"--unlabelled {REST} is the training rows that --train-rows leaves out; give that "
                f"too. A file of that name is ./{REST}"
            )
        return self


class LoadingOptions(Section):
    """How far the files of an encoder are trusted."""

    # Excluded from every file that is written, so that no file can ask for it.
    trust_remote_code: bool = Field(False, exclude=True)
    """run the Python code that comes with the model, if it has some; no file can set this"""
    allow_missing_weights: bool = False
    """initialise at random the weights that the encoder's folder lacks; without this they are an
    error"""


class EncoderOptions(LoadingOptions):
    """The shared encoder and its heads."""

    model: Name | None = None
    """folder or hub name of the encoder; default: the demo's small encoder"""
    from_scratch: bool = Field(False, description="random weights instead of the encoder's")
    max_length: int = Field(
        128, gt=1, le=LARGEST_NUMBER, description="tokens of a text; the rest is cut"
    )
    dropout: Share | None = None
    """dropout everywhere; default: the encoder's own"""
    head_dropout: Share | None = None
    """dropout in the end task's head and the objectives' classification heads; default: as in the
    rest of the encoder"""
    share_decoder: bool = True
    """objectives share one vocabulary decoder instead of copying it"""


class ObjectiveOptions(Section):
    """The objectives, and how they are weighted."""

    recipe: str | None = Field(
        None,
        description="a system or baseline by name, which sets other options; default: "
        f"{DEFAULT_RECIPE}, if none of --space, --weighter and --aux-task is given",
    )
    space: Name = Field(
        DEFAULT_SPACE,
        description="space of objectives: a name, a YAML file, or objectives with commas between "
        "them; default: "
        f"{DEFAULT_SPACE} with --weighter, the tasks alone with --aux-task",
    )
    weighter: str = Field(
        DEFAULT_WEIGHTER,
        description="how objectives are weighted; default: "
        f"{DEFAULT_WEIGHTER} with --space or --aux-task",
    )
    set: Settings = {}
    """option of a primitive or weighter, such as factored.lr=0.5"""


class RowOptions(Section):
    """The rows of a step."""

    class_weights: ClassWeights = None
    """weight of a class, for the end task's labels, as NAME=WEIGHT, or balanced for the inverse of
    its number of training rows"""
    balanced_rows: bool = False
    """draw the end task's training rows so that classes come equally often"""
    batch_size: Positive = Field(32, description="end-task rows per step")
    dev_batch_size: Positive = Field(32, description="dev rows per step, for the dev gradient")
    aux_batch_size: Positive = 32
    """rows per step of all sampled objectives together"""
    scale_rows: Rate = 1.0
    """factor for those of the three batch sizes that are not given; rounded to the nearest row, at
    least one"""
    draws_per_step: Positive = 1
    """draws of objectives and rows per step; they share its rows"""

    @model_validator(mode="after")
    def _rows_go_together(self) -> "RowOptions":
        if self.balanced_rows and self.class_weights == BALANCED:
            raise ValueError(
                "--balanced-rows and --class-weights balanced both make up for classes of unequal "
                "size, and together would do it twice; give one of them"
            )
        for name in ROWS:
            if getattr(self, name) < self.draws_per_step:
                option = name.replace("_", "-")
                raise ValueError(
                    f"--{option} {getattr(self, name)} is less than one row for each of the "
                    f"--draws-per-step {self.draws_per_step}; give more rows or fewer draws"
                )
        return self


class OptimizerOptions(Section):
    """Learning rates, weight decay and clipping."""

    lr: Rate = Field(1e-4, description="learning rate of the encoder; large ones need less")
    head_lr: Rate = Field(1e-3, description="learning rate of heads")
    weight_decay: Decay = Field(0.01, description="weight decay, on matrices")
    warmup: Share = Field(0.06, description="part of the steps over which the learning rate rises")
    max_grad_norm: float = Field(1.0, gt=0, description="norm that the gradient is clipped to")


class ScheduleOptions(OptimizerOptions):
    """How long to train, at what rates, and which model to keep."""

    seed: int = Field(0, ge=0, lt=2**63, description="seed of every random draw")
    steps: Positive = 400
    """training steps at most; E epochs over N rows are E·N/batch-size"""
    stop_after: Positive | None = None
    """end after this many of the --steps; learning rates fall as for all of them"""
    eval_every: Positive = Field(25, description="steps between evaluations on dev")
    patience: Positive = 8
    """stop after this many evaluations without a better one"""
    metric: Metric = "macro-f1"
    """dev score that selects the best model; default: the first of the kind of end task, such as
    macro-f1"""
    head_weight_decay: Decay | None = None
    """weight decay of heads; default: as the body's"""
    adam_eps: Rate = Field(1e-8, description="ε of AdamW")
    optimizer: Literal["adamw", "sgd"] = "adamw"
    """adamw or sgd, which needs higher rates, such as --lr 0.05 --head-lr 0.05"""
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of SGD")
    schedule: Literal["linear", "constant"] = "linear"
    """learning rate after the warm-up: linear falls to zero, constant stays"""
    final_fine_tuning: Positive | None = None
    """at most this many epochs on the end task alone, from the best model, at a learning rate of
    1e-6; kept only if better on dev"""
    train_on_dev: bool = False
    """train on the dev rows, too, for all steps, and keep the last model; dev scores then do not
    say how good it is on new texts"""
    test_predictions: bool = False
    """write the logits for every test row at each evaluation to test_predictions.jsonl"""

    @property
    def last_step(self) -> int:
        """Steps after which the main training ends at the latest."""
        return self.steps if self.stop_after is None else self.stop_after

    @model_validator(mode="after")
    def _schedule_goes_together(self) -> "ScheduleOptions":
        if self.last_step > self.steps:
            raise ValueError(
                f"--stop-after {self.stop_after} is more than the --steps {self.steps}; give fewer"
            )
        if self.train_on_dev and self.final_fine_tuning is not None:
            raise ValueError(
                "--final-fine-tuning keeps what is better on dev, and --train-on-dev trains on "
                "dev; leave one of them out"
            )
        return self


class DevHeadOptions(Section):
    """The head that the dev gradient goes through."""

    dev_head: str = "remembered"
    """head of the dev gradient: remembered fits it to end-task rows of earlier steps, own-rows to
    the step's own, drawn to rows drawn for it; end-task takes the end task's own head"""
    dev_head_rows: Positive = 256
    """number of remembered or drawn rows that the dev head is fitted to"""
    dev_head_fit: str = "adamw"
    """what fits it: adamw takes a few steps, logistic is a penalised logistic regression"""
    dev_head_steps: Positive = Field(10, description="maximum AdamW iterations of that fit")
    dev_head_lr: Rate = Field(1e-2, description="learning rate of that fit")
    dev_head_weight_decay: float = Field(0.1, ge=0, description="weight decay of that fit")
    dev_average: Share = 0.0
    """decay of the running mean of the dev gradient over steps"""


class GradientOptions(DevHeadOptions):
    """Gradients, their signals, and how often the weights learn from them."""

    gradients: str = "auto"
    """engine of the gradient signals: stream takes one task at a time, packed of aang-plugin-packed
    all together; auto is packed on an accelerator if it is installed, else stream"""
    clip_apart: bool = False
    """clip the gradients of body and heads separately to --max-grad-norm"""
    task_clip: Rate | None = None
    """norm that each task's gradient over the body is clipped to before it is weighted; default: no
    limit"""
    meta_fraction: Share = 0.0
    """part of dev that is reserved for what weighters learn from"""
    meta_every: Positive = Field(1, description="measure gradient signals every this many steps")
    weights_every: Positive = 1
    """update the weights every this many measured steps, from their mean signals"""


class ComputingOptions(Section):
    """Device, precision and memory, and what to do when a step fails."""

    micro_batch_size: Positive | None = None
    """maximum rows in one pass through the body; the step stays the same"""
    on_nan: Literal["stop", "skip"] = "stop"
    """what to do when the loss or gradient of a step is NaN or infinite: stop, or skip it"""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """precision of forward passes in training; parameters, signals and final scores are fp32. auto
    is bf16 where the device has instructions for it, else fp32: name one if runs on different
    machines must be equal"""
    device: str = "auto"
    """torch device; auto takes an accelerator if there is one"""
    checkpoint_every: float = Field(120.0, ge=0)
    """seconds between checkpoints; 0 takes one after every round"""


class RunOptions(ComputingOptions):
    """Memory, speed and the run folder."""

    save_memory: bool = False
    """keep the activations of one layer at a time and recompute the others: a third more time, the
    stream engine only"""
    compile: bool = False
    """compile the encoder with torch.compile; needs a C++ compiler, the stream engine only"""
    out: File | None = Field(None, description="the run's folder; default: a new one under runs/")


SECTIONS = (
    *(DataOptions, EncoderOptions, ObjectiveOptions, ScheduleOptions),
    *(RowOptions, GradientOptions, RunOptions),
)
"""The sections in the order of ``aang train --help``."""


COMMON = frozenset(
    {
        *("train", "dev", "test", "dataset", "text", "text_pair", "label", "unlabelled"),
        *("model", "max_length", "recipe", "space", "weighter", "set"),
        *("seed", "steps", "minutes", "lr", "batch_size", "device", "out", "data", "label_only"),
    }
)
"""The options that ``--help`` shows, of whatever command has them; ``--help-all`` shows all."""


# pydantic takes the fields of the last base first.
class TrainConfig(
    RunOptions,
    GradientOptions,
    RowOptions,
    ScheduleOptions,
    ObjectiveOptions,
    EncoderOptions,
    DataOptions,
):
    """The resolved options of a training run.

    The defaults suit small machines and small tasks. The settings of the paper are in the recipes
    ``aang-td`` and ``aang-td+ed``, which set the options that differ.

    Attributes:
        plugin_options: the options that plug-ins have added to this schema, by name.
    """

    plugin_options: ClassVar[Mapping[str, OptionEntry]] = {}

    @property
    def by_name(self) -> dict[str, Any]:
        """Every option as a configuration file would hold it, those of plug-ins included."""
        return self.model_dump(mode="json")

    @property
    def given_to_plugins(self) -> Mapping[str, Any]:
        """The options of plug-ins that differ from their defaults."""
        fields = type(self).model_fields
        values = {name: getattr(self, name) for name in self.plugin_options}
        return {name: v for name, v in values.items() if v != fields[name].default}

    @model_validator(mode="after")
    def _sections_and_plugins_go_together(self) -> "TrainConfig":
        if self.train_on_dev and self.meta_fraction:
            raise ValueError(
                "--meta-fraction reserves dev rows, and --train-on-dev trains on all of them; "
                "leave one of them out"
            )
        given = self.given_to_plugins
        for name in given:
            other = self.plugin_options[name].goes_with
            if other is not None and other not in given:
                raise ValueError(
                    f"--{name.replace('_', '-')} goes with --{other.replace('_', '-')}; give that "
                    "too"
                )
        return self
