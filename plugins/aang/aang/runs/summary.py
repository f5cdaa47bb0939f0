"""What a run is about to do, for people to read before its first step."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from aang.assembly.assembly import Assembly
from aang.corpora.labelled_task import contradictions, overlaps
from aang.runs.schema import Count, DataSizes, DataStatistics, Number, Part
from aang_core.tasks.workbench import AGAINST_DEV, END_TASK

_LISTED = 8
"""Most classes that are named."""


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
        objectives: rows of all objectives together that read rows of their own; 0 if none do.
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


class PluginOption(Part):
    """An option of a plug-in that differs from its default, or one that names its engine.

    Attributes:
        value: its value, as a configuration file would hold it.
        plugin: the plug-in's distribution.
    """

    value: Any
    plugin: str


class Summary(DataSizes):
    """What a run is about to do.

    Attributes:
        overlaps: how many examples of a part have a text of an earlier part, as ``dev in train``.
        contradictory: texts that occur with different labels.
        encoder: the encoder's folder or hub name, or a description of it.
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
        options: the options of plug-ins that differ from their defaults, by name, and
            ``gradients`` if it names the engine of a plug-in.
        expected: what the training takes; None unless it was measured.
    """

    overlaps: dict[str, Count]
    contradictory: ContradictoryTexts
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
    options: dict[str, PluginOption] = Field(default_factory=dict)
    expected: Expected = None  # type: ignore[assignment]


def summary_of(assembly: Assembly, statistics: DataStatistics, device: str) -> Summary:
    """Sum up a run before it begins.

    Args:
        assembly: its options, with the precision that was chosen, model, rows and tasks.
        statistics: what ``data.json`` will hold.
        device: the device that computes.
    """
    sources, config = assembly.sources, assembly.config
    task, stages = sources.task, sources.plan.pretraining
    parts = {"train": task.train, "dev": task.dev, "test": task.test}
    apart = [] if config.train_on_dev else task.dev  # they are in train, too
    repeated = contradictions(chain(task.train, apart, task.test))
    (first, labels) = next(iter(repeated.items()), (("", None), ()))
    objectives, budget = assembly.auxiliaries, assembly.row_budget
    readers = sum(objective.shares == END_TASK for objective in objectives)
    options = {
        name: PluginOption(value=config.by_name[name], plugin=option.origin.distribution)
        for name, option in config.plugin_options.items()
        if name in config.given_to_plugins
    }
    if (engine := sources.named_engine) is not None:
        options["gradients"] = PluginOption(value=engine.name, plugin=engine.origin.distribution)
    head = assembly.model.head_origin
    if head is not None and stages:
        head = "new: pre-training leaves an encoder without a head"
    return Summary(
        **{name: getattr(statistics, name) for name in DataSizes.model_fields},
        overlaps={f"{a} in {b}": count for (a, b), count in overlaps(parts).items()},
        contradictory=ContradictoryTexts.without_empty(
            texts=len(repeated),
            rows=sum(counts.total() for counts in repeated.values()),
            first=first[0],
            labels=list(labels),
        ),
        encoder=config.model or "the demo's small encoder",
        parameters=sum(p.numel() for p in assembly.model.body.parameters()),
        head=head,
        max_length=min(config.max_length, assembly.model.max_length),
        weighter=config.weighter,
        space=config.space,
        objectives=[objective.name for objective in objectives],
        pretraining={stage.name: stage.settings.steps for stage in stages},
        rows=StepRows(
            end_task=budget.end_task,
            dev=budget.dev if assembly.weighter.signals & AGAINST_DEV else 0,
            objectives=budget.auxiliary if readers < len(objectives) else 0,
            end_task_readers=readers,
        ),
        steps=config.last_step,
        eval_every=config.eval_every,
        device=device,
        precision=config.precision,
        options=options,
    )


def in_words(summary: Summary) -> list[tuple[str, str]]:
    """The summary as lines: the name and the text of each."""
    sizes = ", ".join(f"{part.examples} {name}" for name, part in summary.parts.items())
    lines = [("task", f"{summary.task}: {sizes}")]
    if left_out := [f"{p.left_out} of {name}" for name, p in summary.parts.items() if p.left_out]:
        lines.append(("left out", f"{', '.join(left_out)}: rows without a text or a label"))
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
    if summary.head is not None:
        lines.append(("head", summary.head))
    if summary.options:
        given = (f"{name} {of.value} ({of.plugin})" for name, of in summary.options.items())
        lines.append(("options", ", ".join(given)))
    lines.append(("a step", _step(summary)))
    if summary.expected is not None:
        lines.append(("expected", expectation(summary.expected, summary.steps)))
    return lines


def _classes(labels: Mapping[str, int]) -> str:
    total = max(1, sum(labels.values()))  # zero where no text has a class or a span
    # Without the classes that only dev or test has.
    present = [item for item in labels.items() if item[1]] or labels.items()
    ranked = sorted(present, key=lambda item: -item[1])
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
    texts, have = _count(found.texts, "text"), "has" if found.texts == 1 else "have"
    return (
        f"{texts} ({found.rows} rows) {have} different labels; first {text!r}: "
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
    readers, every = rows.end_task_readers, len(summary.objectives)
    if readers:
        who = "the objective" if every == 1 else _count(readers, "objective")
        parts.append(f"which {who} also {'reads' if readers == 1 else 'read'}")
    if rows.objectives:
        others = "other " if readers else ""
        parts.append(f"{rows.objectives} of all {others}sampled objectives")
    parts += [f"{rows.dev} of dev for the dev gradient"] if rows.dev else []
    epochs = summary.steps * rows.end_task / summary.parts["train"].examples
    budget = f"at most {summary.steps} steps ({epochs:.{0 if epochs >= 10 else 1}f} epochs)"
    return f"{', '.join(parts)}; {budget}, a dev score every {summary.eval_every}"


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


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
