"""Schemas of the lines in a run's logs, for writing and for reading."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from aang.runs.schema import Count, Number, Part
from aang_core.training.evaluation import Loss, Metric

Numbers = dict[str, Number]
StageName = Annotated[str, Field(pattern=r"^[a-z]+$")]


class LinePart(Part):
    """One line of a file."""

    file: ClassVar[str]


class DevScores(LinePart):
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

    @classmethod
    def of(
        cls, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> "DevScores":
        """The line of an evaluation; see :meth:`aang_core.training.trainer.Observer`."""
        line = {"step": step, "dev": dict(dev), "best": best}
        return cls.model_validate(line | ({"losses": dict(losses)} if losses else {}))


class Cost(LinePart):
    """A line of ``cost.jsonl``: the cost of the training so far."""

    file: ClassVar[str] = "cost.jsonl"

    step: Count
    seconds: Number
    rows: Count


class Round(LinePart):
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
