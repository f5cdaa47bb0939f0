"""What the JSON files of a run folder hold: one description, which writes them and reads them.

Those that grow by a line at a time are in :mod:`aang_core.runs.log_lines`.

A part that not every run has is left out of its file where it has nothing to say, and is never
null. Files of other versions may hold more than is described here; it is kept and not looked at.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from aang_core.training.evaluation import Metric

Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Part(BaseModel):
    """An object in one of the files."""

    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, validate_by_name=True, validate_by_alias=True
    )

    def document(self) -> dict[str, Any]:
        """The object as it stands in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class FilePart(Part):
    """An object that is a whole file."""

    file: ClassVar[str]


class Scores(Part):
    """A score on dev and on test; None for test if there is no such data."""

    dev: Number
    test: Number | None

    def on(self, part: str) -> float | None:
        """The score on ``dev`` or ``test``."""
        return self.dev if part == "dev" else self.test


class ChosenScores(Part):
    """The metric that the best model was chosen by, with its scores."""

    name: Metric
    dev: Number
    test: Number | None


class BeforeAfter(Part):
    """A held-out score before and after a training."""

    before: Number
    after: Number


class StageTexts(Part):
    """How many texts a stage of pre-training was trained on and judged by."""

    train: Count
    held_out: Count


class StageResult(FilePart):
    """What came of a stage of pre-training: ``stage.json``, and a part of ``result.json``.

    Attributes:
        log_likelihood: Of held-out text.
        accuracy: Of the predictions on held-out text, for objectives that predict tokens.
        note: A sentence for the user, if the stage made held-out text less likely.
        model: The folder of its model, below the run's.
    """

    file: ClassVar[str] = "stage.json"

    objective: str
    texts: StageTexts = None  # type: ignore[assignment]
    steps: Count
    best_step: Count
    log_likelihood: Annotated[BeforeAfter, Field(alias="log-likelihood")]
    train_seconds: Number = 0.0
    model: str
    accuracy: BeforeAfter = None  # type: ignore[assignment]
    note: str = ""


class FinalFineTuning(Part):
    """What came of fine-tuning on the end task alone, after the search.

    Attributes:
        kept: Whether an epoch was better on dev than the model before.
    """

    epochs: Count
    best_epoch: Count
    kept: bool
    before: Scores
    after: Scores


class PlainFineTuning(Part):
    """What plain fine-tuning scores on the same task: means over ``seeds`` seeds."""

    metric: Metric
    dev: Number
    test: Number
    seeds: Count


class Result(FilePart):
    """What came of a run: ``result.json``, which is written last and makes a run finished.

    Attributes:
        objectives: How many there were.
        majority: The metric's scores of always answering the most frequent class of train.
        body_rows: Rows that went through the body to train.
        peak_memory_bytes: Of the accelerator, or of the process where there is none.
        model: The folder of the classifier, below the run's.
        skipped_steps: Steps whose loss or gradient was not finite.
        fine_tuning: What plain fine-tuning scores on the same task, where that is known.
        processes: How many shared the training, if there were several.
        pretraining: What came of each stage of pre-training.
    """

    file: ClassVar[str] = "result.json"

    weighter: str
    space: str
    seed: Count
    objectives: Count
    metric: ChosenScores
    majority: Scores
    best_step: Count
    steps: Count
    train_seconds: Number
    body_rows: Count = 0
    precision: str = ""
    peak_memory_bytes: Count
    model: str
    skipped_steps: Count = 0
    final_fine_tuning: FinalFineTuning = None  # type: ignore[assignment]
    recipe: str = ""
    fine_tuning: PlainFineTuning = None  # type: ignore[assignment]
    processes: Count = 1
    pretraining: dict[str, StageResult] = {}


class PluginUsed(Part):
    """A plug-in that there was: ``status`` is ``ok`` if it was loaded."""

    distribution: str
    version: str
    entry_point: str = ""
    status: str


class PluginsUsed(FilePart):
    """The plug-ins that there were, and what the run is made of: ``plugins.json``.

    Attributes:
        primitives: Each primitive that was used, as ``stage/name``, and its distribution.
        changes: How the plug-ins differed when the run was resumed, a sentence each.
    """

    file: ClassVar[str] = "plugins.json"

    plugins: list[PluginUsed]
    primitives: dict[str, str]
    changes: list[str] = []


class LabelledRows(Part):
    """A part of the end task's data.

    Attributes:
        cut: Texts that were cut to fit.
        labels: How many examples each class has.
    """

    examples: Count
    cut: Count
    labels: dict[str, Count]


class SourceTexts(Part):
    """A data source of objectives: its texts, and how many were cut to fit."""

    texts: Count
    cut: Count


class DataStatistics(FilePart):
    """What was trained on: ``data.json``.

    Attributes:
        task: The end task's name.
        digest: Of the end task's data.
        parts: ``train``, ``dev`` and, if there is one, ``test``.
        sources: The data of objectives, by the name of the data primitive.
        notes: What reading the data met, a sentence each.
    """

    file: ClassVar[str] = "data.json"

    task: str
    digest: str = ""
    parts: dict[str, LabelledRows]
    sources: dict[str, SourceTexts]
    notes: list[str]


class TrainRows(FilePart):
    """The training rows that a run has drawn: ``train_rows.json``.

    Attributes:
        rows: Their places in the training data, from 0, ascending.
        of: Rows of the training data.
        digest: Of the rows drawn.
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
        confusion: How often class i was taken for class j, in the order of the labels; empty where
            there are too many classes.
    """

    scores: dict[Metric, Number]
    classes: dict[str, ClassScores]
    confusion: list[list[Count]] = []


class Evaluation(FilePart):
    """Where the chosen model is right: ``evaluation.json``."""

    file: ClassVar[str] = "evaluation.json"

    labels: list[str]
    dev: PartEvaluation
    test: PartEvaluation = None  # type: ignore[assignment]

    @property
    def parts(self) -> dict[str, PartEvaluation]:
        """``dev`` and, if there is one, ``test``."""
        return {"dev": self.dev} | ({"test": self.test} if self.test is not None else {})
