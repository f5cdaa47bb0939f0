"""The charts of a run, and those of several runs together."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal, TypeVar

from aang import Run

from aang_core import softmax
from aang_plugin_report.charts import Bars, Chart, Heat, Lines, Series, confusion

POINTS = 240
"""Most points of a curve; a page with every step of a long run would load slowly."""

BINS = 48
TOP = 5
LISTED = 16
RowT = TypeVar("RowT")

END_TASK = "end-task"
ON_DEV = "end-task on dev"
LOSS: Literal["loss"] = "loss"
"""The key of the end task's mean loss among the scores of an evaluation."""
CURVES = 12
"""Most objectives that the charts of losses and weights show; the tables have all of them."""
DOMAIN = "s2orc"
"""The data that reads ``--domain``."""


def charts_of(run: Run) -> list[Chart]:
    """Every chart that the run has data for."""
    made = [
        _scores(run),
        _losses(run),
        _weights(run),
        *_factors(run),
        _alpha(run),
        _ranking(run),
        _cosines(run),
        *_confusions(run),
    ]
    return [chart for chart in made if chart is not None]


def charts_of_several(runs: Sequence[Run]) -> list[Chart]:
    """The charts that compare runs."""
    named = dict(zip(run_names(runs), runs, strict=True))
    made = [*_scores_of(runs), *_over_domain_text(runs), _end_task_weights(named), _tops(runs)]
    return [chart for chart in made if chart is not None]


def run_names(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders; if two are alike, as much of their paths as differs.

    The runs of a comparison with one seed, for example, are all called ``seed-0``.
    """
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return names
    folders = [run.folder.absolute() for run in runs]
    common = Path(os.path.commonpath(folders))
    apart = [str(folder.relative_to(common)) for folder in folders]
    return [name if part == "." else part for name, part in zip(names, apart, strict=True)]


def losses_of(run: Run) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]:
    """The steps and losses of every task, the end task first; empty for a run without a step.

    Each loss is the mean over the steps since the evaluation before, except the dev loss, which is
    that of the model at that step.
    """
    found: dict[str, tuple[list[int], list[float]]] = {}
    for line in run.records.evaluations:
        for name, loss in line.losses.items():
            steps, losses = found.setdefault(name, ([], []))
            steps.append(line.step)
            losses.append(loss)
    evaluated = [line for line in run.records.evaluations if LOSS in line.dev]
    if found and evaluated:
        found[ON_DEV] = ([line.step for line in evaluated], [line.dev[LOSS] for line in evaluated])
    order = [END_TASK, ON_DEV, *run.records.objectives]
    return {name: found[name] for name in sorted(found, key=order.index)}


def _on_dev(run: Run, name: str) -> Series:
    evaluations = run.records.evaluations
    scores = [100 * line.dev[run.metric] for line in evaluations]
    return Series(name, [line.step for line in evaluations], scores)


def _kept(run: Run) -> tuple[int, str]:
    """The step of the model that the run kept, and why that one."""
    outcome = run.outcome
    why = "the last, dev rows trained on" if outcome.trained_on_dev else "best on dev"
    return outcome.best_step, why


def _scores(run: Run) -> Lines:
    metric, best = run.metric, run.outcome.best_step
    dev = _on_dev(run, f"dev {metric}")
    series = [dev]
    test, ended = run.outcome.metric.test, ""
    if test is not None:
        series.append(Series(f"test {metric}, once at the end", [best], [100 * test], points=True))
        ended = f" Its test score is {100 * test:.2f}."
    if run.outcome.trained_on_dev:
        reached = f"{dev.y[-1]:.2f} at the end, after training on dev rows, too"
    else:
        of_best = dict(zip(dev.x, dev.y, strict=True))[best]
        reached = f"its best, {of_best:.2f}, at step {best} of {run.outcome.steps}"
    return Lines(
        key="scores",
        title=f"{metric} over steps",
        y_label=metric,
        series=series,
        mark=_kept(run),
        alt=f"Dev {metric} goes from {dev.y[0]:.2f} at step 0 to {reached}.{ended}",
    )


def _scores_of(runs: Sequence[Run]) -> list[Lines]:
    """A chart for each metric, because different metrics share no scale."""
    # Scores of dev rows that were trained on compare with nothing.
    named = [
        (name, run)
        for name, run in zip(run_names(runs), runs, strict=True)
        if not run.outcome.trained_on_dev
    ]
    metrics = list(dict.fromkeys(run.metric for _, run in named))
    charts = []
    for metric in metrics:
        series = [_on_dev(run, name) for name, run in named if run.metric == metric]
        best = max(series, key=lambda s: max(s.y))
        charts.append(
            Lines(
                key=f"scores-{metric}" if len(metrics) > 1 else "scores",
                title=f"Dev {metric} over steps",
                y_label=f"dev {metric}",
                series=series,
                alt=f"{best.name} reaches most, {max(best.y):.2f}.",
            )
        )
    return charts


def _losses(run: Run) -> Lines | None:
    """Losses over steps, of the end task and the objectives with the largest weights."""
    losses = losses_of(run)
    if not losses:
        return None
    weights = run.records.mean_weights(0.5, 1)
    of_end_task = (END_TASK, ON_DEV)
    trained = [name for name in losses if name not in of_end_task]
    ranked = sorted(trained, key=lambda name: -weights[name])
    shown = [name for name in losses if name in of_end_task or name in ranked[:CURVES]]
    known = [name for name in (*of_end_task, *ranked[:1]) if name in losses]
    ends = [f"{name} from {losses[name][1][0]:.4f} to {losses[name][1][-1]:.4f}" for name in known]
    few = f", the {CURVES} objectives with the largest weights" if len(ranked) > CURVES else ""
    return Lines(
        key="losses",
        title=f"Losses{few}",
        y_label="loss",
        series=[Series(name, *losses[name]) for name in shown],
        mark=_kept(run),
        alt=f"In training means between evaluations: {', '.join(ends)}.",
    )


def _over_domain_text(runs: Sequence[Run]) -> list[Lines]:
    """A chart for each metric whose runs have read different amounts of in-domain text."""
    read = {
        metric: [
            run
            for run in runs
            if run.metric == metric and _domain_texts(run) and not run.outcome.trained_on_dev
        ]
        for metric in dict.fromkeys(run.metric for run in runs)
    }
    return [
        _score_over_texts(metric, of)
        for metric, of in read.items()
        if len({_domain_texts(run) for run in of}) > 1
    ]


def _score_over_texts(metric: str, runs: Sequence[Run]) -> Lines:
    """Mean score over the number of in-domain texts (TARTAN, Figure 2).

    A point is the mean of runs that differ in their seed alone. A curve joins the points of a
    recipe, or of a weighter and a space, on one end task.
    """
    on_test = all(run.outcome.metric.test is not None for run in runs)
    points: dict[tuple[str, int, str], list[float]] = {}
    for run in runs:
        of = run.outcome
        score = of.metric.test if on_test else of.metric.dev
        options = {k: str(v) for k, v in run.options.items() if k not in ("seed", "out")}
        name = f"{run.records.data.task}, {of.recipe or f'{of.weighter} over {of.space}'}"
        point = (name, _domain_texts(run), json.dumps(options))
        points.setdefault(point, []).append(100 * (score or 0.0))
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for (name, texts, _), scores in sorted(points.items()):
        spread = stdev(scores) if len(scores) > 1 else 0.0
        curves.setdefault(name, []).append((texts, fmean(scores), spread))
    series = []
    for name, of_curve in curves.items():
        x, y, spreads = zip(*of_curve, strict=True)
        bars = [(mean - half, mean + half) for mean, half in zip(y, spreads, strict=True)]
        series.append(Series(name, x, y, intervals=bars))
    part = "test" if on_test else "dev"
    ends = [f"{s.name} from {s.y[0]:.2f} to {s.y[-1]:.2f}" for s in series]
    return Lines(
        key=f"domain-text-{metric}",
        title=f"{part.capitalize()} {metric} over in-domain text, mean ± standard deviation",
        x_label="in-domain texts",
        y_label=f"{part} {metric}",
        series=series,
        x_log=True,
        alt=f"From the fewest texts to the most: {', '.join(ends)}.",
    )


def _domain_texts(run: Run) -> int:
    """How many in-domain texts the run has read, for its objectives or in a stage before.

    It is 0 for a stream, because the run records only the texts of one buffer.
    """
    if run.options.get("set", {}).get(DOMAIN, {}).get("stream"):
        return 0
    if (source := run.records.data.sources.get(DOMAIN)) is not None:
        return source.texts
    stages = [s for s in run.outcome.pretraining.values() if s.objective.startswith(f"{DOMAIN}/")]
    texts = [stage.texts for stage in stages if stage.texts is not None]
    return sum(of.train for of in texts) + sum(of.held_out for of in texts)


def _weights(run: Run) -> Lines | None:
    """The weight of every task (TARTAN, Figure 4; αVIL, Figure 3, right)."""
    rows = _thinned(run.records.rounds)
    if not run.records.objectives:
        return None
    late = run.records.mean_weights(0.5, 1)
    shown = sorted(late, key=lambda name: -late[name])[:CURVES]
    steps = [row.step for row in rows]
    series = [Series(END_TASK, steps, [row.end_task_weight for row in rows])]
    series += [Series(n, steps, [row.weights[n] for row in rows]) for n in late if n in shown]
    first, ended = series[0].y[0], ", ".join(f"{s.name} {s.y[-1]:.3f}" for s in series)
    few = f": the end task and the {CURVES} heaviest objectives" if len(late) > CURVES else ""
    return Lines(
        key="weights",
        title=f"Weights{few}",
        y_label="weight",
        # From zero, because an axis fitted to weights that hardly move would show noise.
        y_range=(0.0, 1.05 * max(max(s.y) for s in series)),
        series=series,
        mark=_kept(run),
        alt=f"The end task begins with {first:.3f}. At the end: {ended}.",
    )


def _end_task_weights(runs: Mapping[str, Run]) -> Lines | None:
    """λ_e of each run with objectives, by the name that its curve gets."""
    series = []
    for name, run in runs.items():
        if run.records.objectives:
            rows = _thinned(run.records.rounds)
            steps = [row.step for row in rows]
            series.append(Series(name, steps, [row.end_task_weight for row in rows]))
    if not series:
        return None
    ends = [f"{s.name} goes from {s.y[0]:.3f} to {s.y[-1]:.3f}" for s in series]
    return Lines(
        key="end-task-weight",
        title="Weight of the end task",
        y_label="λ_e",
        # Fitted to a weight that hardly moves, the axis would show noise.
        y_range=(0.0, 1.0),
        series=series,
        alt=f"{', '.join(ends)}.",
    )


def _factors(run: Run) -> list[Lines]:
    """Each stage's factors as a softmax over its primitives (AANG, Figure 4)."""
    rows = _thinned(run.records.rounds)
    steps = [row.step for row in rows]
    charts = []
    for stage in rows[-1].factors if rows else ():
        shares = [softmax(row.factors[stage]) for row in rows]
        if stage == "all" or len(shares[-1]) < 2:
            continue
        names = list(shares[-1])
        top = max(names, key=lambda name: shares[-1][name])
        charts.append(
            Lines(
                key=f"factors-{stage}",
                title=f"Factors of the stage {stage}",
                y_label="softmax of factors",
                series=[Series(name, steps, [share[name] for share in shares]) for name in names],
                mark=_kept(run),
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
    series = []
    for name in dict.fromkeys(name for row in rows for name in row.alpha):
        known = {i: row.alpha[name] for i, row in enumerate(rows, start=1) if name in row.alpha}
        series.append(Series(name, list(known), list(known.values())))
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
    if len(run.records.objectives) < 2:
        return None
    early, late = run.records.mean_weights(0, 0.1), run.records.mean_weights(0.5, 1)
    ranked = sorted(late, key=lambda name: -late[name])
    few = f", the first {LISTED} of {len(ranked)}" if len(ranked) > LISTED else ""
    return Bars(
        key="ranking",
        title=f"Objectives by mean weight{few}",
        x_label="mean weight",
        labels=ranked[:LISTED],
        groups=_groups(ranked, late, early),
        alt=f"In the last half {ranked[0]} weighs most, {late[ranked[0]]:.4f}, and {ranked[-1]} "
        f"least, {late[ranked[-1]]:.4f}.",
    )


def _tops(runs: Sequence[Run]) -> Bars | None:
    """How often an objective is among those with the largest weights (AANG, Figure 5)."""
    several = [run for run in runs if len(run.records.objectives) > TOP]
    if not several:
        return None
    early, late = (
        fractions_on_top([run.records.mean_weights(*part) for run in several])
        for part in ((0, 0.1), (0.5, 1))
    )
    ranked = sorted(late, key=lambda name: (-late[name], -early.get(name, 0.0), name))
    return Bars(
        key="tops",
        title=f"Part of {len(several)} runs in which an objective is among the top {TOP}",
        x_label="part of the runs",
        labels=ranked[:LISTED],
        groups=_groups(ranked, late, early),
        alt=f"In the last half {ranked[0]} is among the top {TOP} in {late[ranked[0]]:.0%} of the "
        "runs.",
    )


def _groups(
    ranked: Sequence[str], late: Mapping[str, float], early: Mapping[str, float]
) -> list[tuple[str, list[float]]]:
    parts = {"last half": late, "first tenth": early}
    return [(name, [of.get(n, 0.0) for n in ranked[:LISTED]]) for name, of in parts.items()]


def fractions_on_top(weights: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The part of the runs in which each objective is among the top ones; ties share the places."""
    counted: dict[str, float] = {}
    for of_run in weights:
        last = sorted(of_run.values(), reverse=True)[TOP - 1]
        tied = {name for name, weight in of_run.items() if math.isclose(weight, last)}
        above = {name for name, weight in of_run.items() if weight > last} - tied
        share = (TOP - len(above)) / len(tied)
        for name in of_run:
            part = 1.0 if name in above else share * (name in tied)
            counted[name] = counted.get(name, 0.0) + part / len(weights)
    return counted


def _cosines(run: Run) -> Heat | None:
    """Mean cosine of each task with the dev gradient, in bins of steps."""
    rows = [row for row in run.records.rounds if row.cosines]
    if not rows:
        return None
    names = [END_TASK, *run.records.objectives]
    size = math.ceil(len(rows) / BINS)
    bins = [rows[i : i + size] for i in range(0, len(rows), size)]
    grid = [[_mean([r.cosines[n] for r in b if n in r.cosines]) for b in bins] for n in names]
    means = [_mean([v for v in line if v is not None]) for line in grid]
    known = {name: m for name, m in zip(names, means, strict=True) if m is not None}
    alt = f"The end task agrees with the dev gradient by {known.get(END_TASK, 0.0):.4f} on average"
    if objectives := [name for name in run.records.objectives if name in known]:
        top = max(objectives, key=lambda name: known[name])
        alt += f", of the objectives {top} most, by {known[top]:.4f}"
    return Heat(
        key="cosines",
        title="Cosine with the dev gradient",
        x=[str(b[-1].step) for b in bins],
        y=names,
        z=grid,
        diverging=True,
        alt=alt + ".",
    )


def _confusions(run: Run) -> list[Heat]:
    labels = run.records.evaluation.labels
    parts = run.records.evaluation.parts.items()
    return [
        confusion(
            f"confusion-{part}",
            f"Confusion on {part}",
            labels,
            counts,
            f"{part} examples are classified correctly",
        )
        for part, evaluated in parts
        if (counts := evaluated.confusion)
    ]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _thinned(rows: Sequence[RowT]) -> list[RowT]:
    """At most about ``POINTS`` rows, evenly spaced, always with the last one."""
    step = max(1, math.ceil(len(rows) / POINTS))
    kept = list(rows[::step])
    if (len(rows) - 1) % step:
        kept.append(rows[-1])
    return kept
