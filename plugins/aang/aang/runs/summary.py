"""What a run is about to do, for people to read before its first step."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from aang.assembly.assembly import Assembly, row_budget
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.corpora.duplicates import contradictions, overlaps
from aang.runs.schema import Count, DataStatistics, LabelledRows, Number, Part, SourceTexts
from aang_core.tasks.names import END_TASK
from aang_core.tasks.signals import AGAINST_DEV


class ContradictoryTexts(Part):
    """Texts that occur with different labels, in any part of the data.

    Attributes:
        first: the first of them.
        labels: its labels.
    """

    texts: Count
    rows: Count
    first: str = ""
    labels: Sequence[str] = ()


class StepRows(Part):
    """Rows of a step.

    Attributes:
        dev: rows of the dev gradient; 0 for a weighter that needs none.
        objectives: rows of all objectives together that read rows of their own; 0 without such.
        end_task_readers: number of objectives that read the end task's rows of the step instead.
    """

    end_task: Annotated[Count, Field(alias="end-task")]
    dev: Count
    objectives: Count
    end_task_readers: Annotated[Count, Field(alias="end-task-readers")]


class Expected(Part):
    """An estimate of what the training takes, from its measured first steps.

    Attributes:
        seconds: of all steps and of the evaluations on dev; less if training stops early.
        memory_bytes: the peak so far, of the accelerator or of the process.
        steps: number of measured steps.
    """

    seconds: Number
    memory_bytes: Count
    steps: Count


class Summary(Part):
    """What a run is about to do.

    Attributes:
        task: the end task's name.
        parts: sizes, label counts and cut texts of ``train``, ``dev`` and ``test``.
        class_weights: the weight of each class in the end task's loss, if they differ.
        balanced_rows: whether the end task's rows are drawn so that classes come equally often.
        overlaps: how many examples of a part have a text of an earlier part, as ``dev in train``.
        contradictory: texts that occur with different labels.
        sources: the texts of objectives, by data primitive.
        encoder: the encoder's folder or hub name, or what it is without one.
        parameters: number of parameters of its body.
        head: where the end task's head comes from, and why, if the encoder's folder has one.
        max_length: tokens that texts are cut to.
        weighter: how objectives are weighted.
        space: the space of objectives.
        objectives: their names.
        pretraining: the stages of pre-training, with their steps.
        rows: rows of a step.
        steps: the largest number of steps.
        eval_every: steps between evaluations on dev.
        device: the device that computes.
        precision: of forward passes.
        expected: what the training takes; None unless it was measured.
    """

    task: str
    parts: dict[str, LabelledRows]
    class_weights: Mapping[str, Number] = Field(default_factory=dict)
    balanced_rows: bool = False
    overlaps: dict[str, Count]
    contradictory: ContradictoryTexts
    sources: dict[str, SourceTexts]
    encoder: str
    parameters: Count
    head: str | None = None
    max_length: Count
    weighter: str
    space: str
    objectives: list[str]
    pretraining: dict[str, Count]
    rows: StepRows
    steps: Count
    eval_every: Count
    device: str
    precision: str
    expected: Expected = None  # type: ignore[assignment]


def summary_of(
    config: TrainConfig,
    sources: Sources,
    assembly: Assembly,
    statistics: DataStatistics,
    device: str,
) -> Summary:
    """Sum up a run before it begins.

    Args:
        config: its options, with the precision that was chosen.
        sources: its sources.
        assembly: its model, rows and tasks.
        statistics: what ``data.json`` will hold.
        device: the device that computes.
    """
    task = sources.task
    parts = {"train": task.train, "dev": task.dev, "test": task.test}
    repeated = contradictions(chain.from_iterable(parts.values()))
    found: dict[str, Any] = {"texts": repeated.texts, "rows": repeated.rows}
    if repeated.first is not None:
        found |= {"first": repeated.first, "labels": list(repeated.labels)}
    objectives = assembly.auxiliaries
    readers = sum(objective.shares == END_TASK for objective in objectives)
    budget = row_budget(config)
    against_dev = bool(assembly.weighter.signals & AGAINST_DEV)
    return Summary(
        task=task.name,
        parts=statistics.parts,
        class_weights=statistics.class_weights,
        balanced_rows=statistics.balanced_rows,
        overlaps={f"{a} in {b}": count for (a, b), count in overlaps(parts).items()},
        contradictory=ContradictoryTexts.model_validate(found),
        sources=statistics.sources,
        encoder=config.model or "the demo's small encoder",
        parameters=sum(p.numel() for p in assembly.model.body.parameters()),
        head=_head(sources, assembly),
        max_length=min(config.max_length, assembly.model.max_length),
        weighter=config.weighter,
        space=config.space,
        objectives=[objective.name for objective in objectives],
        pretraining={stage.name: stage.settings.steps for stage in sources.pretraining},
        rows=StepRows(
            end_task=budget.end_task,
            dev=budget.dev if against_dev else 0,
            objectives=budget.auxiliary if readers < len(objectives) else 0,
            end_task_readers=readers,
        ),
        steps=config.steps,
        eval_every=config.eval_every,
        device=device,
        precision=config.precision,
    )


def _head(sources: Sources, assembly: Assembly) -> str | None:
    origin = assembly.model.head_origin
    if origin is not None and sources.pretraining:
        return "new: pre-training leaves an encoder without a head"
    return origin
