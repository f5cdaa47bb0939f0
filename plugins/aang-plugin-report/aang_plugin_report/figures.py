"""The charts of a run, and those of several runs together."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from aang import Run

from aang_core import softmax
from aang_plugin_report.charts import Bars, Chart, Heat, Lines, Series
from aang_plugin_report.losses import losses_chart
from aang_plugin_report.run_names import run_names

POINTS = 240
"""Most points of a curve; a page with every step of a long run would load slowly."""

BINS = 48
TOP = 5
LISTED = 16
RowT = TypeVar("RowT")

_WEIGHTS = (0.0, 1.0)
"""The axis of weights: fitted to a weight that hardly moves, it would show noise."""

_MOST_WRITTEN = 20
"""Counts are written into a confusion matrix up to this many classes; more are illegible."""


def charts_of(run: Run) -> list[Chart]:
    """Every chart that the run has data for."""
    made = [
        _scores(run),
        losses_chart(run),
        _end_task_weight(run),
        *_factors(run),
        _alpha(run),
        _ranking(run),
        _cosines(run),
        *_confusions(run),
    ]
    return [chart for chart in made if chart is not None]


def charts_of_several(runs: Sequence[Run]) -> list[Chart]:
    """The charts that compare runs."""
    made = [*_scores_of(runs), _end_task_weights_of(runs), _tops(runs)]
    return [chart for chart in made if chart is not None]


def _scores(run: Run) -> Lines:
    metric, best = run.metric, run.outcome.best_step
    evaluations = run.records.evaluations
    steps = [line.step for line in evaluations]
    series = [Series(f"dev {metric}", steps, [100 * line.dev[metric] for line in evaluations])]
    test, ended = run.outcome.metric.test, ""
    if test is not None:
        series.append(Series(f"test {metric}, once at the end", [best], [100 * test], points=True))
        ended = f" Its test score is {100 * test:.2f}."
    return Lines(
        key="scores",
        title=f"{metric} over steps",
        x_label="step",
        y_label=metric,
        series=series,
        mark=(best, "best on dev"),
        alt=f"Dev {metric} goes from {series[0].y[0]:.2f} at step 0 to its best, "
        f"{max(series[0].y):.2f}, at step {best} of {run.outcome.steps}.{ended}",
    )


def _end_task_weight(run: Run) -> Lines | None:
    if not run.records.objectives:
        return None
    rows = _thinned(run.records.rounds)
    series = Series("λ_e", [r.step for r in rows], [r.end_task_weight for r in rows])
    return Lines(
        key="end-task-weight",
        title="Weight of the end task",
        x_label="step",
        y_label="λ_e",
        y_range=_WEIGHTS,
        series=[series],
        alt=f"λ_e goes from {series.y[0]:.3f} to {series.y[-1]:.3f}.",
    )


def _factors(run: Run) -> list[Lines]:
    """Each stage's factors as a softmax over its primitives (AANG, Figure 4)."""
    rows = _thinned(run.records.rounds)
    if not rows:
        return []
    steps = [row.step for row in rows]
    charts = []
    for stage in rows[-1].factors:
        shares = [softmax(row.factors[stage]) for row in rows]
        if stage == "all" or len(shares[-1]) < 2:
            continue
        names = list(shares[-1])
        top = max(names, key=lambda name: shares[-1][name])
        charts.append(
            Lines(
                key=f"factors-{stage}",
                title=f"Factors of the stage {stage}",
                x_label="step",
                y_label="softmax of factors",
                series=[Series(name, steps, [share[name] for share in shares]) for name in names],
                mark=(run.outcome.best_step, "best on dev"),
                alt=f"At the end {top} has the largest share, {shares[-1][top]:.3f}; all begin "
                f"at {1 / len(names):.3f}.",
            )
        )
    return charts


def _alpha(run: Run) -> Lines | None:
    """α of every task by round (αVIL, Figure 3)."""
    rows = [row for row in run.records.rounds if row.alpha]
    if not rows:
        return None
    names = dict.fromkeys(name for row in rows for name in row.alpha)
    series = [
        Series(
            name,
            [i for i, row in enumerate(rows, start=1) if name in row.alpha],
            [row.alpha[name] for row in rows if name in row.alpha],
        )
        for name in names
    ]
    return Lines(
        key="alpha",
        title="α by round",
        x_label="round",
        y_label="α",
        series=series,
        alt="Last α: " + ", ".join(f"{s.name} {s.y[-1]:.4f}" for s in series[:LISTED]) + ".",
    )


def _ranking(run: Run) -> Bars | None:
    """Objectives by mean weight, early and late (AANG, Figure 5)."""
    records = run.records
    if len(records.objectives) < 2:
        return None
    early, late = records.mean_weights(0, 0.1), records.mean_weights(0.5, 1)
    ranked = sorted(late, key=lambda name: -late[name])
    listed = ranked[:LISTED]
    return Bars(
        key="ranking",
        title="Objectives by mean weight"
        + (f", the first {LISTED} of {len(ranked)}" if len(ranked) > LISTED else ""),
        x_label="mean weight",
        labels=listed,
        groups=[
            ("last half", [late[name] for name in listed]),
            ("first tenth", [early[name] for name in listed]),
        ],
        alt=f"In the last half {ranked[0]} weighs most, {late[ranked[0]]:.4f}, and {ranked[-1]} "
        f"least, {late[ranked[-1]]:.4f}.",
    )


def _cosines(run: Run) -> Heat | None:
    """Mean cosine of each task with the dev gradient, in bins of steps."""
    rows = [row for row in run.records.rounds if row.cosines]
    if not rows:
        return None
    names = ["end-task", *run.records.objectives]
    size = math.ceil(len(rows) / BINS)
    bins = [rows[i : i + size] for i in range(0, len(rows), size)]
    grid = [[_mean([r.cosines[n] for r in b if n in r.cosines]) for b in bins] for n in names]
    means = {
        n: _mean([v for v in line if v is not None]) for n, line in zip(names, grid, strict=True)
    }
    known = {name: mean for name, mean in means.items() if mean is not None}
    end_task = known.get("end-task", 0.0)
    alt = f"The end task agrees with the dev gradient by {end_task:.4f} on average"
    if objectives := [name for name in run.records.objectives if name in known]:
        top = max(objectives, key=lambda name: known[name])
        alt += f", of the objectives {top} most, by {known[top]:.4f}"
    return Heat(
        key="cosines",
        title="Cosine with the dev gradient",
        x_label="step",
        y_label="",
        x=[str(b[-1].step) for b in bins],
        y=names,
        z=grid,
        diverging=True,
        alt=alt + ".",
    )


def _confusions(run: Run) -> list[Heat]:
    charts = []
    labels = run.records.evaluation.labels
    for part, evaluated in run.records.evaluation.parts.items():
        counts = evaluated.confusion
        if not counts:
            continue
        right = sum(counts[i][i] for i in range(len(labels)))
        total = sum(map(sum, counts))
        charts.append(
            Heat(
                key=f"confusion-{part}",
                title=f"Confusion on {part}",
                x_label="predicted",
                y_label="true",
                x=labels,
                y=labels,
                z=counts,
                written=len(labels) <= _MOST_WRITTEN,
                alt=f"{right} of {total} {part} examples are classified correctly.",
            )
        )
    return charts


def _scores_of(runs: Sequence[Run]) -> list[Lines]:
    """A chart for each metric, because scores of different kinds of end task are no scale."""
    metrics = list(dict.fromkeys(run.metric for run in runs))
    named = list(zip(run_names(runs), runs, strict=True))
    return [
        _scores_in(
            metric,
            f"scores-{metric}" if len(metrics) > 1 else "scores",
            [(name, run) for name, run in named if run.metric == metric],
        )
        for metric in metrics
    ]


def _scores_in(metric: str, key: str, runs: Sequence[tuple[str, Run]]) -> Lines:
    series = [
        Series(
            name,
            [line.step for line in run.records.evaluations],
            [100 * line.dev[run.metric] for line in run.records.evaluations],
        )
        for name, run in runs
    ]
    best = max(series, key=lambda s: max(s.y))
    return Lines(
        key=key,
        title=f"Dev {metric} over steps",
        x_label="step",
        y_label=f"dev {metric}",
        series=series,
        alt=f"{best.name} reaches most, {max(best.y):.2f}.",
    )


def _end_task_weights_of(runs: Sequence[Run]) -> Lines | None:
    series = []
    for name, run in zip(run_names(runs), runs, strict=True):
        if run.records.objectives:
            rows = _thinned(run.records.rounds)
            steps = [row.step for row in rows]
            series.append(Series(name, steps, [row.end_task_weight for row in rows]))
    if not series:
        return None
    return Lines(
        key="end-task-weight",
        title="Weight of the end task",
        x_label="step",
        y_label="λ_e",
        y_range=_WEIGHTS,
        series=series,
        alt="Last λ_e: " + ", ".join(f"{s.name} {s.y[-1]:.3f}" for s in series) + ".",
    )


def _tops(runs: Sequence[Run]) -> Bars | None:
    """How often an objective is among those with the largest weights (AANG, Figure 5)."""
    several = [run for run in runs if len(run.records.objectives) > TOP]
    if not several:
        return None
    early, late = (
        _fractions([run.records.mean_weights(*part) for run in several])
        for part in ((0, 0.1), (0.5, 1))
    )
    ranked = sorted(late, key=lambda name: (-late[name], -early.get(name, 0.0), name))[:LISTED]
    return Bars(
        key="tops",
        title=f"Part of {len(several)} runs in which an objective is among the top {TOP}",
        x_label="part of the runs",
        labels=ranked,
        groups=[
            ("last half", [late[name] for name in ranked]),
            ("first tenth", [early.get(name, 0.0) for name in ranked]),
        ],
        alt=f"In the last half {ranked[0]} is among the top {TOP} in {late[ranked[0]]:.0%} of the "
        "runs.",
    )


def _fractions(weights: Sequence[Mapping[str, float]]) -> dict[str, float]:
    counted: dict[str, float] = {}
    for of_run in weights:
        top = set(sorted(of_run, key=lambda name: -of_run[name])[:TOP])
        for name in of_run:
            counted[name] = counted.get(name, 0.0) + (name in top) / len(weights)
    return counted


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _thinned(rows: Sequence[RowT]) -> list[RowT]:
    """At most about ``POINTS`` rows, evenly spaced, always with the last one."""
    step = max(1, math.ceil(len(rows) / POINTS))
    kept = list(rows[::step])
    if (len(rows) - 1) % step:
        kept.append(rows[-1])
    return kept
