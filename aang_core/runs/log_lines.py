"""The lines of a run's logs, which grow while it trains: described once, to write and read them."""

from typing import Annotated, ClassVar

from pydantic import Field

from aang_core.runs.schema import Count, Number, Part
from aang_core.training.evaluation import Metric

Numbers = dict[str, Number]
StageName = Annotated[str, Field(pattern=r"^[a-z]+$")]


class LinePart(Part):
    """An object that is a line of a file."""

    file: ClassVar[str]


class DevScores(LinePart):
    """A line of ``metrics.jsonl``: the scores of one evaluation on dev."""

    file: ClassVar[str] = "metrics.jsonl"

    step: Count
    dev: dict[Metric, Number]
    best: bool = False


class Cost(LinePart):
    """A line of ``cost.jsonl``: what training has taken so far."""

    file: ClassVar[str] = "cost.jsonl"

    step: Count
    seconds: Number
    rows: Count


class Round(LinePart):
    """A line of ``weights.jsonl``: one round of training.

    Attributes:
        end_task_weight: λ_e.
        weights: Of every objective.
        cosines: Of tasks with the dev gradient, where they were measured.
        alpha: αVIL's α of every task.
        factors: What the weights are made of: values of each stage's primitives.
    """

    file: ClassVar[str] = "weights.jsonl"

    step: Count
    end_task_weight: Number
    weights: Numbers
    cosines: Numbers = Field(default_factory=dict)
    alpha: Numbers = Field(default_factory=dict)
    factors: dict[StageName, Numbers] = Field(default_factory=dict)
