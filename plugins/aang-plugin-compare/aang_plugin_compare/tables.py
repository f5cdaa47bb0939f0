"""The outcome of a comparison: mean ± std by method and task, with significance tests.

Runs with the same seed are pairs. If each seed draws its own training rows, both runs of a pair
have the same rows, so tests are paired by draw.
"""

import json
import math
import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from aang.assembly.labelled_tasks import end_task_columns
from aang.config import TrainConfig
from aang.runs import ChosenScores, Result, read_part, recorded_draw
from aang.runs.files import part_if_there
from aang.runs.schema import DataStatistics

from aang_core import ConfigError
from aang_core.storage import csv_line, write_file, writing
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import ControlResult, results_of
from aang_plugin_compare.curves import Point
from aang_plugin_compare.statistics import holm, paired_t_p, permutation_p


@dataclass(frozen=True)
class Entry:
    """A method on a task, with the setting that is best on dev; no scores without a finished run.

    Attributes:
        task: the task.
        method: the method.
        metric: name of the metric.
        seeds: the seeds of its finished runs.
        dev: dev scores by seed; empty if dev was trained on.
        test: test scores by seed; empty without a test set.
        setting: the hyper-parameters that were chosen on dev.
        tried: number of settings.
        missing: number of its seeds without a finished run.
        seconds: seconds of training by seed.
        rows: rows through the body for each step of the main training, with those of pre-training
            and of a final fine-tuning; None if there are no steps.
        drawn: whether each seed drew its own training rows.
        quick: whether it is a quick control, which is not tested against the baseline.
        points: mean difference to the baseline over the seeds that both have, times 100.
        permutation: p value of the permutation test against the baseline, Holm-corrected over the
            table.
        t_test: p value of the paired t-test, corrected in the same way.
        best: whether its mean score, as shown, is the best of the task; several may tie.
        dev_intervals: the 95% bootstrap interval of each dev score, over the rows of dev; empty if
            not all runs have recorded one.
        test_intervals: the same for test.
        on_dev: whether dev scores count even if it has test scores, because another method or
            control on the task has none.
    """

    task: str
    method: str
    metric: str
    seeds: Sequence[int]
    dev: Sequence[float]
    test: Sequence[float]
    setting: str
    tried: int
    missing: int
    seconds: Sequence[float] = ()
    rows: float | None = None
    drawn: bool = False
    quick: bool = False
    points: float | None = None
    permutation: float | None = None
    t_test: float | None = None
    best: bool = False
    on_dev: bool = False
    dev_intervals: Sequence[Sequence[float]] = ()
    test_intervals: Sequence[Sequence[float]] = ()

    @property
    def scores(self) -> Sequence[float]:
        """The scores that count: test scores, or dev scores if there are none or ``on_dev``."""
        return self.dev if self.on_dev else self.test or self.dev


def outcome(comparison: Comparison, root: Path, *, quick: bool = True) -> list[Entry]:
    """An entry for each method on each task, and for each control that has a result.

    Args:
        comparison: the comparison.
        root: its folder.
        quick: whether to include quick controls; they come first.

    Raises:
        ConfigError: runs of one task and seed were trained on different rows or data.
        DataError: the result of a run is damaged.
    """
    entries = []
    finished = {cell.folder for cell in comparison.finished(root)}
    for task in comparison.tasks:
        of_task = [c for c in comparison.cells if c.task == task]
        seeds = sorted({c.seed for c in of_task})
        found = results_of(root, task, seeds, comparison.left_out)
        leading = {c.seed: c for c in comparison.leading() if c.task == task}
        held_out = not any(c.config.train_on_dev for c in leading.values())
        controls = [control_entry(task, of, len(seeds), held_out) for of in found.values()]
        _check_rows([c for c in of_task if c.folder in finished], found.values(), leading, root)
        entries += [e for e in controls if e.quick and quick]
        for method in comparison.methods:
            cells = [c for c in of_task if c.method == method]
            entries.append(_entry(task, method, cells, finished, root))
        entries += [e for e in controls if not e.quick]
    return judged(entries, comparison.baseline)


def _check_rows(
    cells: Sequence[Cell],
    controls: Iterable[Sequence[ControlResult]],
    leading: Mapping[int, Cell],
    root: Path,
) -> None:
    """Check that the runs and controls of each seed of a task have the same rows and data."""

    def data(config: TrainConfig) -> tuple[Hashable, ...]:
        # With the same files, these options make other data.
        return "data", end_task_columns(config), config.train_on_dev, config.test_score

    found: list[tuple[int, tuple[Hashable, ...], str, str | None]] = []
    for cell in cells:
        folder, place = root / cell.folder, str(root / cell.folder)
        draw, statistics = recorded_draw(folder), part_if_there(DataStatistics, folder)
        found.append((cell.seed, ("training rows",), place, draw.digest if draw else None))
        if statistics is not None and statistics.digest:
            found.append((cell.seed, data(cell.config), place, statistics.digest))
    for result in (result for of in controls for result in of):
        place = f"{result.control} with seed {result.seed}"
        found.append((result.seed, ("training rows",), place, result.rows))
        if result.data:
            found.append((result.seed, data(leading[result.seed].config), place, result.data))
    first: dict[Hashable, tuple[str, str | None]] = {}
    for seed, what, place, digest in found:
        other, expected = first.setdefault((seed, what), (place, digest))
        if digest != expected:
            raise ConfigError(
                f"{place}: has other {what[0]} than {other}, so a file changed in between; remove "
                f"the older one from {root}, and call aang compare again"
            )


def control_entry(
    task: str, results: Sequence[ControlResult], seeds: int, held_out: bool = True
) -> Entry:
    """The row of a control in a table.

    Args:
        task: the task.
        results: its results.
        seeds: the number of seeds of the task.
        held_out: whether dev was held out.
    """
    return Entry(
        task=task,
        method=results[0].control,
        seeds=[result.seed for result in results],
        setting="",
        tried=results[0].tried,
        missing=seeds - len(results),
        seconds=[result.seconds for result in results],
        drawn=results[0].rows is not None,
        quick=results[0].quick,
        **_scores([result.metric for result in results], dev=held_out),
    )


def _entry(task: str, method: str, cells: Sequence[Cell], finished: Set[Path], root: Path) -> Entry:
    settings: dict[int | None, list[tuple[Cell, Result]]] = {}
    for cell in cells:
        if cell.folder in finished:
            result = read_part(Result, root / cell.folder)
            settings.setdefault(cell.choice, []).append((cell, result))
    of_setting = len({cell.seed for cell in cells})
    tried = len({cell.choice for cell in cells})
    if not settings:
        return Entry(task, method, "", [], [], [], "", tried, of_setting)
    # Settings with fewer seeds than others are left out, because their means say less.
    most = max(len(runs) for runs in settings.values())
    whole = [runs for runs in settings.values() if len(runs) == most]
    chosen = max(whole, key=lambda runs: statistics.mean(r.metric.dev for _, r in runs))
    chosen = sorted(chosen, key=lambda run: run[0].seed)
    steps = sum(result.steps for _, result in chosen)
    rows = sum(result.all_body_rows for _, result in chosen)
    return Entry(
        task=task,
        method=method,
        seeds=[cell.seed for cell, _ in chosen],
        setting=chosen[0][0].setting,
        tried=tried,
        missing=of_setting - len(chosen),
        seconds=[result.all_seconds for _, result in chosen],
        rows=rows / steps if steps else None,
        drawn=chosen[0][0].config.train_rows is not None,
        **_scores(
            [result.metric for _, result in chosen],
            dev=not any(result.trained_on_dev for _, result in chosen),
        ),
    )


def _scores(metrics: Sequence[ChosenScores], *, dev: bool = True) -> dict[str, Any]:
    """The scores of an entry; test scores and intervals are left out if one run lacks them.

    Args:
        metrics: the scores of its runs.
        dev: whether dev was held out.
    """
    tests = [metric.test for metric in metrics]
    scores: dict[str, Any] = {
        "metric": metrics[0].name,
        "dev": [metric.dev for metric in metrics] if dev else [],
        "test": [] if None in tests else tests,
    }
    for part in ("dev", "test"):
        known = bool(scores[part]) and all(part in metric.intervals for metric in metrics)
        scores[f"{part}_intervals"] = [m.intervals[part] for m in metrics] if known else []
    return scores


def judged(entries: Sequence[Entry], baseline: str | None) -> list[Entry]:
    """The entries with tests against the baseline and the best of each task marked.

    Test scores count, or dev scores on a task where an entry has no others.

    Args:
        entries: rows of a table; only their scores count.
        baseline: the method that the others are tested against; None for no tests.
    """
    untested = {e.task for e in entries if e.dev and not e.test}
    entries = [replace(e, on_dev=e.task in untested) for e in entries]
    against = {e.task: e for e in entries if e.method == baseline and e.scores}
    pairs = [_pairs(e, against.get(e.task)) for e in entries]
    # Quick controls are not candidates, and testing them would make every other test stricter.
    tested = [([], []) if e.quick else pair for e, pair in zip(entries, pairs, strict=True)]
    permutations = holm([permutation_p(*pair) for pair in tested])
    t_tests = holm([paired_t_p(*pair) for pair in tested])
    best: dict[str, float] = {}
    for e in entries:
        if e.scores:
            best[e.task] = max(best.get(e.task, -math.inf), _shown_mean(e))
    return [
        replace(
            e,
            points=100 * (statistics.mean(own) - statistics.mean(theirs)) if own else None,
            permutation=permutation,
            t_test=t_test,
            best=bool(e.scores) and _shown_mean(e) == best[e.task],
        )
        for e, (own, theirs), permutation, t_test in zip(
            entries, pairs, permutations, t_tests, strict=True
        )
    ]


def _shown_mean(entry: Entry) -> float:
    """The mean score, as exact as the table shows it."""
    return round(100 * statistics.mean(entry.scores), 2)


def _pairs(entry: Entry, baseline: Entry | None) -> tuple[list[float], list[float]]:
    """The scores of the seeds that both have; none for the baseline itself."""
    if baseline is None or entry.method == baseline.method:
        return [], []
    theirs = dict(zip(baseline.seeds, baseline.scores, strict=True))
    own = dict(zip(entry.seeds, entry.scores, strict=True))
    shared = [seed for seed in own if seed in theirs]
    return [own[seed] for seed in shared], [theirs[seed] for seed in shared]


FORMATS = {"text": "txt", "markdown": "md", "latex": "tex", "json": "json"}
"""The forms of the table, each with the ending of its file."""


def table(
    entries: Sequence[Entry], kind: str, baseline: str | None, difference: bool = False
) -> str:
    """The table as text.

    Args:
        entries: rows of the table.
        kind: one of :data:`FORMATS`.
        baseline: the method that the others are tested against.
        difference: whether to add a column of differences to the baseline, in points.
    """
    if kind == "json":
        return json.dumps([asdict(entry) for entry in entries], indent=2) + "\n"
    drawn = any(entry.drawn for entry in entries)
    if len({entry.metric for entry in entries if entry.metric}) > 1:
        entries = [replace(e, task=f"{e.task}, {e.metric or '–'}") for e in entries]
    header = ["task", "method", "dev", "test", "draws" if drawn else "seeds", "tried"]
    header += ["seconds", "rows a step"]
    if difference:
        header.insert(4, "points")
    if baseline is not None:
        header += ["p permutation", "p t-test"]
    rows = [_row(entry, kind, baseline, difference, drawn) for entry in entries]
    if kind == "latex":
        return _latex(header, rows)
    text = plain_table(header, rows, markdown=kind == "markdown")
    marked = kind == "text" and any(entry.best for entry in entries)
    return f"{text}* the best mean of its task\n" if marked else text


def _row(entry: Entry, kind: str, baseline: str | None, difference: bool, drawn: bool) -> list[str]:
    seeds = str(len(entry.seeds))
    if entry.missing:
        seeds += f" of {len(entry.seeds) + entry.missing}"
    if drawn and not entry.drawn:
        seeds += " seeds"
    plus = r"$\pm$" if kind == "latex" else "±"
    dev = score_text(entry.dev, plus, entry.dev_intervals)
    test = score_text(entry.test, plus, entry.test_intervals)
    if entry.best:
        bold = {"markdown": "**{}**", "latex": r"\textbf{{{}}}", "text": "{} *"}[kind]
        if entry.test and not entry.on_dev:
            test = bold.format(test)
        else:
            dev = bold.format(dev)
    row = [entry.task, entry.method, dev, test, seeds, str(entry.tried)]
    row.append(f"{statistics.mean(entry.seconds):.1f}" if entry.seconds else "–")
    row.append("–" if entry.rows is None else f"{entry.rows:.0f}")
    if difference:
        row.insert(4, "–" if entry.points is None else f"{entry.points:+.2f}")
    if baseline is not None:
        row += ["–" if p is None else f"{p:.3f}" for p in (entry.permutation, entry.t_test)]
    return row


_SPECIAL = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "–": "--", "{": r"\{", "}": r"\}"}
)


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the package booktabs."""
    body = [
        " & ".join(
            cell.translate(_SPECIAL) if i < 2 else cell.replace("–", "--")
            for i, cell in enumerate(row)
        )
        for row in rows
    ]
    lines = [
        rf"\begin{{tabular}}{{ll{'r' * (len(header) - 2)}}}",
        r"\toprule",
        " & ".join(header) + r" \\",
        r"\midrule",
        *(line + r" \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False
) -> str:
    """A table as aligned text, or as Markdown; it ends with a line break."""
    if markdown:
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join(lines) + "\n"


def score_text(
    scores: Sequence[float], plus: str = "±", intervals: Sequence[Sequence[float]] = ()
) -> str:
    """The mean of scores, times 100, with its standard deviation if there are several.

    Args:
        scores: scores between 0 and 1; a dash stands for none.
        plus: the sign before the standard deviation.
        intervals: the interval of each score; the means of their ends follow in brackets.
    """
    if not scores:
        return "–"
    spread = f" {plus} {100 * statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    ends = "–".join(f"{100 * statistics.mean(end):.1f}" for end in zip(*intervals, strict=True))
    return f"{100 * statistics.mean(scores):.2f}{spread}" + (f" ({ends})" if ends else "")


def write_outcome(
    root: Path,
    entries: Sequence[Entry],
    points: Sequence[Point],
    baseline: str | None,
    *,
    difference: bool,
) -> None:
    """Write the table in all forms, and the curves as CSV and JSON.

    Args:
        root: the folder of the comparison.
        entries: rows of the table.
        points: points of the curves.
        baseline: the method that the others are tested against.
        difference: whether the table has a column of differences to the baseline.

    Raises:
        StorageError: a file cannot be written.
    """
    header = csv_line(field.name for field in fields(Point))
    texts = {
        **{f"table.{e}": table(entries, form, baseline, difference) for form, e in FORMATS.items()},
        "curves.csv": header + "".join(csv_line(astuple(point)) for point in points),
        "curves.json": json.dumps([asdict(point) for point in points]) + "\n",
    }
    for name, text in texts.items():
        with writing(root / name):
            write_file(root / name, text)
