"""What a run is about to do, for people to read before its first step."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from aang_core.assembly.assembly import Assembly, row_budget
from aang_core.assembly.sources import Sources
from aang_core.config import TrainConfig
from aang_core.corpora.duplicates import contradictions, overlaps
from aang_core.runs.schema import Count, DataStatistics, LabelledRows, Number, Part, SourceTexts
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
        objectives: rows of all objectives together; 0 without objectives.
    """

    end_task: Annotated[Count, Field(alias="end-task")]
    dev: Count
    objectives: Count


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
        expected: what the training takes; none unless it was measured.
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
    names = [objective.name for objective in assembly.auxiliaries]
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
        max_length=config.max_length,
        weighter=config.weighter,
        space=config.space,
        objectives=names,
        pretraining={stage.name: stage.settings.steps for stage in sources.pretraining},
        rows=StepRows(
            end_task=budget.end_task,
            dev=budget.dev if against_dev else 0,
            objectives=budget.auxiliary if names else 0,
        ),
        steps=config.steps,
        eval_every=config.eval_every,
        device=device,
        precision=config.precision,
    )


def in_words(summary: Summary) -> list[tuple[str, str]]:
    """The summary as lines, each with a name."""
    sizes = ", ".join(f"{part.examples} {name}" for name, part in summary.parts.items())
    lines = [("task", f"{summary.task}: {sizes}")]
    if labels := summary.parts["train"].labels:
        lines.append(("classes", _classes(labels)))
    if summary.class_weights:
        weights = ", ".join(f"{name} {w:.3g}" for name, w in summary.class_weights.items())
        lines.append(("weights", f"of classes in the end task's loss: {weights}"))
    if summary.balanced_rows:
        lines.append(("rows", "of the end task are drawn so that classes come equally often"))
    lines.append((f"cut to {summary.max_length}", _cut(summary)))
    lines.append(("overlaps", _overlaps(summary)))
    lines.append(("duplicates", _contradictory(summary.contradictory)))
    lines.append(("objectives", _objectives(summary)))
    for name, steps in summary.pretraining.items():
        lines.append(("pre-training", f"{name}, {steps} steps"))
    computing = f"{summary.precision} on {summary.device}"
    lines.append(
        ("encoder", f"{summary.encoder}, {summary.parameters / 1e6:.1f} M parameters, {computing}")
    )
    lines.append(("a step", _step(summary)))
    if summary.expected is not None:
        lines.append(("expected", expectation(summary.expected, summary.steps)))
    return lines


_LISTED = 8
"""Most classes or objectives that are named."""


def _classes(labels: Mapping[str, int]) -> str:
    total = max(1, sum(labels.values()))  # zero where no text has a class or a span
    ranked = sorted(labels.items(), key=lambda item: -item[1])
    named = ranked if len(ranked) <= _LISTED else ranked[: _LISTED - 1]
    words = ", ".join(f"{name} {count} ({count / total:.0%})" for name, count in named)
    if len(named) < len(ranked):
        name, count = ranked[-1]
        words += f", … {name} {count} ({count / total:.0%})"
    return f"{len(ranked)} in train: {words}"


def _cut(summary: Summary) -> str:
    texts = {name: (part.cut, part.examples) for name, part in summary.parts.items()}
    texts |= {
        f"the data {name}": (source.cut, source.texts) for name, source in summary.sources.items()
    }
    cut = [f"{n} of {all_} of {name} ({n / all_:.0%})" for name, (n, all_) in texts.items() if n]
    return ", ".join(cut) if cut else "no text is longer"


def _overlaps(summary: Summary) -> str:
    if not summary.overlaps:
        *names, last = summary.parts
        return f"{', '.join(names)} and {last} share no text"
    found = [(count, *pair.split(" in ")) for pair, count in summary.overlaps.items()]
    return ", ".join(f"{count} of {part} in {other} too" for count, part, other in found)


def _contradictory(found: ContradictoryTexts) -> str:
    if not found.texts:
        return "no text has different labels"
    text = found.first if len(found.first) <= 60 else found.first[:59] + "…"
    return (
        f"{found.texts} texts ({found.rows} rows) have different labels; first {text!r}: "
        f"{', '.join(found.labels)}"
    )


def _objectives(summary: Summary) -> str:
    names = summary.objectives
    if not names:
        return f"none: {summary.weighter} trains the end task alone"
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"{len(names)} of {summary.space}, weighted by {summary.weighter}: {shown}"


def _step(summary: Summary) -> str:
    rows = summary.rows
    parts = [f"{rows.end_task} end-task rows"]
    parts += [f"{rows.objectives} of all sampled objectives"] if rows.objectives else []
    parts += [f"{rows.dev} of dev for the dev gradient"] if rows.dev else []
    return (
        f"{', '.join(parts)}; at most {summary.steps} steps, a dev score every {summary.eval_every}"
    )


def expectation(expected: Expected, steps: int) -> str:
    """An estimate in words."""
    return (
        f"about {duration(expected.seconds)} for {steps} steps, "
        f"{expected.memory_bytes / 1e9:.2f} GB; an estimate from {expected.steps} measured steps"
    )


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, as exact as an estimate can be."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 100 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
