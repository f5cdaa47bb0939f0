"""The summary of a run in words: a line for each of its parts."""

from collections.abc import Mapping

from aang.runs.summary import ContradictoryTexts, Expected, Summary

_LISTED = 8
"""Most classes that are named."""


def in_words(summary: Summary) -> list[tuple[str, str]]:
    """The summary as lines, each with a name."""
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
