"""Schemas of the files in a run folder, for writing and for reading.

A field that does not apply to a run is left out of its file and is never null. Files of other
versions may have more fields than the schema; these are kept and ignored.
"""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from aang.task_types.metrics import Loss, Metric, shown_score
from aang_core.plugins.registry import ONE_CLASS

Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)]


Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""The lower and the upper bound."""


class Part(BaseModel):
    """An object in one of the files."""

    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, validate_by_name=True, validate_by_alias=True
    )

    @classmethod
    def without_empty(cls, **fields: Any) -> Self:
        """Make the object without optional fields that are empty, zero or None."""
        known = cls.model_fields
        return cls.model_validate({n: v for n, v in fields.items() if v or known[n].is_required()})

    def document(self) -> dict[str, Any]:
        """The object as it is in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class FilePart(Part):
    """The content of a file, or of one of the lines of a log."""

    file: ClassVar[str]


class Scores(Part):
    """A score on dev and on test; None for test if there is no test data."""

    dev: Number
    test: Number | None

    def on(self, part: str) -> float | None:
        """The score on ``dev`` or ``test``."""
        return self.dev if part == "dev" else self.test


class ChosenScores(Scores):
    """The metric that the best model was chosen by, with its scores.

    Attributes:
        intervals: the 95% bootstrap interval of the score on ``dev`` and ``test``, over their rows.
    """

    name: Metric
    intervals: dict[str, Interval] = {}

    def shown(self, part: str) -> str:
        """The score on ``dev`` or ``test`` with its interval, for people."""
        return shown_score(self.on(part), self.name, self.intervals.get(part, ()))


class BeforeAfter(Part):
    """A held-out score before and after a training."""

    before: Number
    after: Number


class StageTexts(Part):
    """How many texts a stage of pre-training was trained and evaluated on."""

    train: Count
    held_out: Count


class StageResult(FilePart):
    """The result of a stage of pre-training: ``stage.json``, and a part of ``result.json``.

    Attributes:
        log_likelihood: the log-likelihood of held-out text.
        accuracy: the accuracy on held-out text, for objectives that predict tokens.
        body_rows: rows that went through the body to train.
        note: a sentence for the user, if the stage made held-out text less likely.
        model: the folder of its model, relative to the run folder.
    """

    file: ClassVar[str] = "stage.json"

    objective: str
    texts: StageTexts = None  # type: ignore[assignment]
    steps: Count
    best_step: Count
    log_likelihood: Annotated[BeforeAfter, Field(alias="log-likelihood")]
    train_seconds: Number
    body_rows: Count
    model: str
    accuracy: BeforeAfter = None  # type: ignore[assignment]
    note: str = ""


class FinalFineTuning(Part):
    """The result of fine-tuning on the end task alone, after the search.

    Attributes:
        kept: whether any epoch was better on dev than the model before.
        body_rows: rows that went through the body to train.
    """

    epochs: Count
    best_epoch: Count
    kept: bool
    before: Scores
    after: Scores
    train_seconds: Number
    body_rows: Count


class PlainFineTuning(Scores):
    """Scores of plain fine-tuning on the same task: means over ``seeds`` seeds."""

    metric: Metric
    seeds: Count


class Result(FilePart):
    """The result of a run: ``result.json``, which is written last and marks a run as finished.

    Attributes:
        objectives: the number of objectives.
        majority: the metric of the best prediction that ignores the text.
        baseline: what that prediction is, such as the most frequent class of train.
        controls: scores of linear models on the same rows, by name; ``tf-idf`` if it has one.
        pipeline: the task of transformers' ``pipeline`` that the model is for.
        train_seconds: seconds of the main training.
        body_rows: rows that went through the body in the main training.
        peak_memory_bytes: the peak memory of the accelerator, or of the process if there is none.
        model: the folder of the classifier, relative to the run folder.
        skipped_steps: steps that were skipped because a loss or gradient was not finite.
        fine_tuning: scores of plain fine-tuning on the same task, if known.
        processes: how many processes shared the training, if several.
        pretraining: the result of each stage of pre-training.
        trained_on_dev: whether dev rows were trained on, too, so that no dev score is held out; the
            last model is then kept, and ``best_step`` is the last step.
        logs: the SHA-256 of ``metrics.jsonl`` and ``weights.jsonl``.
    """

    file: ClassVar[str] = "result.json"

    weighter: str
    space: str
    seed: Count
    objectives: Count
    metric: ChosenScores
    majority: Scores
    baseline: str = "majority class"
    controls: dict[str, Scores] = {}
    pipeline: str = "text-classification"
    best_step: Count
    steps: Count
    train_seconds: Number
    body_rows: Count
    precision: str = ""
    peak_memory_bytes: Count
    model: str
    skipped_steps: Count = 0
    final_fine_tuning: FinalFineTuning = None  # type: ignore[assignment]
    recipe: str = ""
    fine_tuning: PlainFineTuning = None  # type: ignore[assignment]
    processes: Count = 1
    pretraining: dict[str, StageResult] = {}
    trained_on_dev: bool = False
    logs: dict[str, str] = {}

    @property
    def all_seconds(self) -> float:
        """Seconds of training, with those of pre-training and of the final fine-tuning."""
        return self.train_seconds + sum(part.train_seconds for part in self._before_and_after)

    @property
    def all_body_rows(self) -> int:
        """Rows through the body to train, counted like `all_seconds`."""
        return self.body_rows + sum(part.body_rows for part in self._before_and_after)

    @property
    def _before_and_after(self) -> "list[StageResult | FinalFineTuning]":
        tuned = self.final_fine_tuning
        return [*self.pretraining.values(), *([] if tuned is None else [tuned])]


class PluginUsed(Part):
    """A plug-in that was found; its ``status`` is ``ok`` if it was loaded."""

    distribution: str
    version: str
    entry_point: str = ""
    status: str


class PluginsUsed(FilePart):
    """The plug-ins that were found and the primitives that the run used: ``plugins.json``.

    Attributes:
        plugins: all plug-ins that were found.
        primitives: for each primitive that was used, as ``stage/name``, its distribution; also for
            the engine of a plug-in that the options name, as ``engine/name``.
        changes: how the plug-ins had changed when the run was resumed, a sentence each.
    """

    file: ClassVar[str] = "plugins.json"

    plugins: list[PluginUsed]
    primitives: dict[str, str]
    changes: list[str] = []


class LabelledRows(Part):
    """A part of the end task's data.

    Attributes:
        cut: how many texts were cut to fit.
        labels: how many examples, or spans, each class has; empty without classes.
        left_out: how many rows were left out because they lack a text or label.
    """

    examples: Count
    cut: Count
    labels: dict[str, Count]
    left_out: Count = 0


class SourceTexts(Part):
    """A data source of objectives: its texts, and how many were cut to fit."""

    texts: Count
    cut: Count


class DataSizes(Part):
    """How much data a run has.

    Attributes:
        task: the end task's name.
        parts: ``train``, ``dev`` and, if there is test data, ``test``.
        sources: the data of objectives, by the name of the data primitive.
        class_weights: the weight of each class of the end task, if they differ.
        balanced_rows: whether the end task's rows are drawn so that classes come equally often.
    """

    task: str
    parts: dict[str, LabelledRows]
    sources: dict[str, SourceTexts]
    class_weights: dict[str, Number] = {}
    balanced_rows: bool = False


class DataStatistics(DataSizes, FilePart):
    """Statistics of the data: ``data.json``.

    Attributes:
        task_type: the kind of the end task.
        digest: the digest of the end task's data.
        notes: notes about the data, a sentence each.
    """

    file: ClassVar[str] = "data.json"

    task_type: str = ONE_CLASS.task_type
    digest: str = ""
    notes: list[str]


class TrainRows(FilePart):
    """The training rows that a run has drawn: ``train_rows.json``.

    Attributes:
        rows: their indices in the training data, ascending.
        of: the number of rows in the training data.
        digest: the digest of the drawn rows.
    """

    file: ClassVar[str] = "train_rows.json"

    rows: Annotated[list[Count], Field(min_length=1)]
    of: Count
    digest: str


class ClassScores(Part):
    """The scores of one class, and how many examples have it."""

    precision: Number
    recall: Number
    f1: Number
    examples: Count


class PartEvaluation(Part):
    """The scores on one part of the data.

    Attributes:
        intervals: the 95% bootstrap interval of each score, over the rows.
        confusion: how often class i was predicted as class j, in the order of the labels; empty if
            there are too many classes.
    """

    scores: dict[Metric, Number]
    intervals: dict[Metric, Interval] = {}
    classes: dict[str, ClassScores]
    confusion: list[list[Count]] = []

    def shown(self, metric: Metric) -> str:
        """A score with its interval, for people."""
        return shown_score(self.scores[metric], metric, self.intervals.get(metric, ()))


class Evaluation(FilePart):
    """Scores and errors of the chosen model: ``evaluation.json``.

    Attributes:
        labels: what errors are listed by: the classes, or the types of spans.
        unseen: those of them that only dev or test has; the model never predicts them.
        chosen: what was chosen on dev for its predictions, such as a threshold.
    """

    file: ClassVar[str] = "evaluation.json"

    labels: list[str]
    unseen: list[str] = []
    chosen: dict[str, Number] = {}
    dev: PartEvaluation
    test: PartEvaluation = None  # type: ignore[assignment]

    @property
    def parts(self) -> dict[str, PartEvaluation]:
        """``dev`` and, if there is test data, ``test``."""
        return {"dev": self.dev} | ({"test": self.test} if self.test is not None else {})

    @model_validator(mode="after")
    def _errors_are_listed_by_label(self) -> Self:
        # A plug-in's kind may leave classes out.
        listed = [part.classes.keys() for part in self.parts.values() if part.classes]
        if any(names != set(self.labels) for names in listed):
            raise ValueError("its classes are not its labels")
        return self


Numbers = dict[str, Number]
StageName = Annotated[str, Field(pattern=r"^[a-z]+$")]


class DevScores(FilePart):
    """A line of ``metrics.jsonl``: the scores of one evaluation on dev.

    Attributes:
        dev: the scores, and the end task's mean loss over dev, without class weights.
        losses: mean training loss of each task over the steps since the last line; none before the
            first step.
    """

    file: ClassVar[str] = "metrics.jsonl"

    step: Count
    dev: dict[Metric | Loss, Number]
    best: bool = False
    losses: Numbers = Field(default_factory=dict)


class LogitsOnTest(FilePart):
    """A line of ``test_predictions.jsonl``: what the model computes for test at one evaluation.

    Attributes:
        logits: ``[N, C]`` in the order of the test rows, as the model in training computes them:
            float32, whatever precision trains; numbers in units of their standard deviation.
            Classes are in the order of the labels of ``evaluation.json``, without unseen ones.
    """

    file: ClassVar[str] = "test_predictions.jsonl"

    step: Count
    logits: list[list[Number]]


class Cost(FilePart):
    """A line of ``cost.jsonl``: the cost of the training so far."""

    file: ClassVar[str] = "cost.jsonl"

    step: Count
    seconds: Number
    rows: Count


class Round(FilePart):
    """A line of ``weights.jsonl``: one round of training.

    Attributes:
        end_task_weight: λ_e.
        weights: the weight of every objective.
        losses: mean training loss of each task that the round trained, over its steps.
        cosines: cosine of each task's gradient with the dev gradient, if measured.
        alpha: αVIL's α of every task.
        factors: the values of each stage's primitives that the weights are computed from.
    """

    file: ClassVar[str] = "weights.jsonl"

    step: Count
    end_task_weight: Number
    weights: Numbers
    losses: Numbers = Field(default_factory=dict)
    cosines: Numbers = Field(default_factory=dict)
    alpha: Numbers = Field(default_factory=dict)
    factors: dict[StageName, Numbers] = Field(default_factory=dict)
