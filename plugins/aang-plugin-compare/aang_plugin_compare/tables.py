"""The outcome of a comparison: mean ± std by method and task, with significance tests.

Runs with the same seed are pairs. If each seed draws its own training rows, both runs of a pair
have the same rows, so tests are paired by draw.
"""

import json
import statistics
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aang.runs import ChosenScores, Result, read_part

from aang_core import ConfigError
from aang_plugin_compare.cells import Cell, Comparison
from aang_plugin_compare.control_results import (
    FOLDER,
    ControlMetric,
    ControlResult,
    result_files,
    results_of,
)
from aang_plugin_compare.plain_tables import plain_table, score_text
from aang_plugin_compare.same_rows import check_same_rows
from aang_plugin_compare.statistics import holm, paired_t_p, permutation_p


@dataclass(frozen=True)
class Entry:
    """A method on a task, with the setting that is best on dev; without a finished run, no scores.

    Attributes:
        task: the task.
        method: the method.
        metric: name of the metric.
        seeds: the seeds of its finished runs.
        dev: dev scores by seed.
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
        best: whether its mean score is the best of the task; several may be, if it is shown alike.
        dev_intervals: the 95% bootstrap interval of each dev score, over the rows of dev; empty if
            not all runs have recorded one.
        test_intervals: the same of test.
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
        ConfigError: runs of one task and seed were trained on different rows.
        DataError: the result of a run is damaged.
    """
    entries = []
    finished = {cell.folder for cell in comparison.finished(root)}
    for task in comparison.tasks:
        of_task = [c for c in comparison.cells if c.task == task]
        seeds = sorted({c.seed for c in of_task})
        _check_rows(of_task, finished, comparison.left_out, root)
        found = results_of(root, task, seeds, comparison.left_out)
        if taken := set(found) & set(comparison.methods):
            name = min(taken)
            raise ConfigError(
                f"{root / FOLDER / task / name}: a method is called {name} too; rename it"
            )
        controls = [
            control_entry(task, results, len(seeds))
            for results in found.values()
            if quick or not results[0].quick
        ]
        methods = [
            _entry(task, method, [c for c in of_task if c.method == method], finished, root)
            for method in comparison.methods
        ]
        entries += [e for e in controls if e.quick]
        entries += methods
        entries += [e for e in controls if not e.quick]
    return judged(entries, comparison.baseline)


def _check_rows(
    cells: Sequence[Cell], finished: Set[Path], left_out: Set[Path], root: Path
) -> None:
    """Check that the runs and controls of each seed of a task have the same training rows."""
    for seed in sorted({cell.seed for cell in cells}):
        of_seed = [cell for cell in cells if cell.seed == seed]
        folders = [root / cell.folder for cell in of_seed if cell.folder in finished]
        check_same_rows(folders, result_files(root, of_seed[0].task, seed, left_out))


def control_entry(task: str, results: Sequence[ControlResult], seeds: int) -> Entry:
    """The row of a control in a table, given its results and the number of seeds of the task."""
    tests = [result.metric.test for result in results]
    return Entry(
        task=task,
        method=results[0].control,
        metric=results[0].metric.name,
        seeds=[result.seed for result in results],
        dev=[result.metric.dev for result in results],
        test=[test for test in tests if test is not None] if None not in tests else [],
        setting="",
        tried=results[0].tried,
        missing=seeds - len(results),
        seconds=[result.seconds for result in results],
        drawn=results[0].rows is not None,
        quick=results[0].quick,
        dev_intervals=_intervals([result.metric for result in results], "dev"),
        test_intervals=_intervals([result.metric for result in results], "test"),
    )


def _intervals(metrics: Sequence[ChosenScores | ControlMetric], part: str) -> list[list[float]]:
    """The interval of each score on a part; none if one lacks it."""
    found = [metric.intervals[part] for metric in metrics if part in metric.intervals]
    return found if len(found) == len(metrics) else []


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
    whole = {choice: runs for choice, runs in settings.items() if len(runs) == most}
    chosen = max(whole.values(), key=lambda runs: statistics.mean(r.metric.dev for _, r in runs))
    chosen = sorted(chosen, key=lambda run: run[0].seed)
    metrics = [result.metric for _, result in chosen]
    tests = [metric.test for metric in metrics if metric.test is not None]
    steps = sum(result.steps for _, result in chosen)
    rows = sum(result.all_body_rows for _, result in chosen)
    return Entry(
        task=task,
        method=method,
        metric=metrics[0].name,
        seeds=[cell.seed for cell, _ in chosen],
        dev=[metric.dev for metric in metrics],
        test=tests if len(tests) == len(metrics) else [],
        setting=chosen[0][0].setting,
        tried=tried,
        missing=of_setting - len(chosen),
        seconds=[result.all_seconds for _, result in chosen],
        rows=rows / steps if steps else None,
        drawn=chosen[0][0].config.train_rows is not None,
        dev_intervals=_intervals(metrics, "dev"),
        test_intervals=_intervals(metrics, "test"),
    )


def judged(entries: Sequence[Entry], baseline: str | None) -> list[Entry]:
    """The entries with tests against the baseline and the best of each task marked.

    Scores on test count, and those on dev for a task on which an entry has no others.

    Args:
        entries: rows of a table, of which only the scores count.
        baseline: the method that the others are tested against; None for no tests.
    """
    untested = {e.task for e in entries if e.dev and not e.test}
    entries = [replace(e, on_dev=e.task in untested) for e in entries]
    scored = [e for e in entries if e.scores]
    against = {e.task: e for e in scored if e.method == baseline}
    beside = [e for e in scored if e.method != baseline and e.task in against]
    # Quick controls are not candidates, and testing them would make every other test stricter.
    compared = [e for e in beside if not e.quick]
    values: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    pairs = [_pairs(e, against[e.task]) for e in compared]
    permutations = holm([permutation_p(*pair) for pair in pairs])
    t_tests = holm([paired_t_p(*pair) for pair in pairs])
    for entry, permutation, t_test in zip(compared, permutations, t_tests, strict=True):
        values[entry.task, entry.method] = permutation, t_test
    points = {(e.task, e.method): _points(*_pairs(e, against[e.task])) for e in beside}
    best = {
        task: max(_shown_mean(e) for e in scored if e.task == task)
        for task in {e.task for e in scored}
    }
    complete = []
    for e in entries:
        permutation, t_test = values.get((e.task, e.method), (None, None))
        complete.append(
            replace(
                e,
                points=points.get((e.task, e.method)),
                permutation=permutation,
                t_test=t_test,
                best=bool(e.scores) and _shown_mean(e) == best[e.task],
            )
        )
    return complete


def _shown_mean(entry: Entry) -> float:
    """The mean score, as exact as the table shows it."""
    return round(100 * statistics.mean(entry.scores), 2)


def _points(own: Sequence[float], theirs: Sequence[float]) -> float | None:
    if not own:
        return None
    return 100 * (statistics.mean(own) - statistics.mean(theirs))


def _pairs(entry: Entry, baseline: Entry) -> tuple[list[float], list[float]]:
    """The scores of the seeds that both have."""
    theirs = dict(zip(baseline.seeds, baseline.scores, strict=True))
    own = dict(zip(entry.seeds, entry.scores, strict=True))
    shared = [seed for seed in own if seed in theirs]
    return [own[seed] for seed in shared], [theirs[seed] for seed in shared]


FORMATS = ("text", "markdown", "latex", "json")


def table(
    entries: Sequence[Entry], kind: str, baseline: str | None, *, difference: bool = False
) -> str:
    """The table as text.

    Args:
        entries: rows of the table.
        kind: one of `FORMATS`.
        baseline: the method that the others are tested against.
        difference: whether to add a column of differences to the baseline, in points.
    """
    if kind == "json":
        return json.dumps([asdict(entry) for entry in entries], indent=2) + "\n"
    drawn = any(entry.drawn for entry in entries)
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
