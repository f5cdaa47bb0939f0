"""The HTML page, a single file that needs no network."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang import Run
from aang.runs import shown_score

from aang_core.storage import write_file, writing
from aang_plugin_report.charts import Chart
from aang_plugin_report.drawing import draw_picture, plotly_json
from aang_plugin_report.figures import charts_of, charts_of_several, losses_of, run_names


@dataclass(frozen=True)
class Table:
    """A table of the page; readers can sort it by any column.

    Attributes:
        title: its heading.
        header: names of the columns.
        rows: its rows, with one value for each column.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Page:
    """What a page shows, from top to bottom.

    Attributes:
        title: its heading.
        facts: the most important ones, each with its name.
        lines: sentences below the facts.
        charts: the charts.
        tables: the tables.
        notes: notes on the data.
    """

    title: str
    facts: Mapping[str, str]
    charts: Sequence[Chart]
    tables: Sequence[Table]
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()

    def write(self, path: Path) -> None:
        """Write the page with everything it needs, including plotly.js, compressed.

        All names and labels are escaped.

        Args:
            path: the file to write.

        Raises:
            StorageError: it cannot be written.
        """
        # Imported here, because both take a while.
        from jinja2 import Environment
        from plotly.offline import get_plotlyjs

        drawn = {chart.key: plotly_json(chart) for chart in self.charts}
        templates = files("aang_plugin_report") / "templates"
        page, style, script = (
            (templates / f"page.{kind}").read_text(encoding="utf-8")
            for kind in ("html", "css", "js")
        )
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        # The highest level takes three times as long and saves a tenth.
        packed = base64.b64encode(zlib.compress(get_plotlyjs().encode(), 3)).decode()
        text = environment.from_string(page).render(
            page=self,
            style=style,
            script=script,
            plotly=packed,
            # A script element has no escaping, but the text must not contain the end of the
            # element.
            figures=json.dumps(drawn).replace("<", "\\u003c"),
        )
        with writing(path):
            write_file(path, text)


def write_page(runs: Sequence[Run], path: Path, results: Sequence[Chart] = ()) -> None:
    """Write the page of one run or of several together.

    Args:
        runs: the runs.
        path: the file to write.
        results: charts of comparisons, which come first.

    Raises:
        StorageError: it cannot be written.
    """
    if len(runs) > 1:
        charts = [*results, *charts_of_several(runs)]
        page = Page(f"{len(runs)} runs", {}, charts, _tables_of_several(runs))
    else:
        (run,) = runs
        charts, notes = [*results, *charts_of(run)], run.records.data.notes
        page = Page(run.name, _facts(run), charts, tables_of(run), notes=notes)
    page.write(path)


def write_figures(runs: Sequence[Run], folder: Path, results: Sequence[Chart] = ()) -> list[Path]:
    """Draw every chart as PNG and SVG.

    Args:
        runs: the runs.
        folder: where to put the files; created if missing.
        results: charts of comparisons.

    Returns:
        The files.

    Raises:
        StorageError: one cannot be written; those before it are complete.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    charts = charts_of_several(runs) if len(runs) > 1 else charts_of(runs[0])
    paths = []
    for chart in [*results, *charts]:
        for kind in ("png", "svg"):
            path = folder / f"{chart.key}.{kind}"
            with writing(path):
                draw_picture(chart, path)
            paths.append(path)
    return paths


def _facts(run: Run) -> dict[str, str]:
    """The facts at the top of the page."""
    outcome, data = run.outcome, run.records.data
    facts = {f"dev {run.metric}": outcome.metric.shown("dev")}
    if outcome.metric.test is not None:
        facts[f"test {run.metric}"] = outcome.metric.shown("test")
    if outcome.trained_on_dev:
        facts["dev rows"] = "were trained on: no score of new texts"
        facts["model"] = f"the last, of step {outcome.steps}"
    else:
        facts["best step"] = f"{outcome.best_step} of {outcome.steps}"
        if outcome.final_fine_tuning and outcome.final_fine_tuning.kept:
            facts["best step"] += ", then fine-tuned on the end task alone"
    facts["weighter"] = outcome.weighter
    facts["objectives"] = str(outcome.objectives)
    if weights := data.class_weights:
        facts["class weights"] = f"{min(weights.values()):.3g} to {max(weights.values()):.3g}"
    if data.balanced_rows:
        facts["end-task rows"] = "drawn equally by class"
    facts["time"] = _duration(outcome.all_seconds)
    facts["peak memory"] = f"{outcome.peak_memory_bytes / 1e9:.2f} GB"
    return facts


def tables_of(run: Run) -> list[Table]:
    """Every table of the page of one run."""
    records, used = run.records, set(run.plugins.primitives.values())
    tables = [_scores_table(run)]
    for part, evaluated in records.evaluation.parts.items():
        classes = [
            [label, *(100 * rate for rate in (of.precision, of.recall, of.f1)), of.examples]
            for label, of in evaluated.classes.items()
        ]
        header = ["class", "precision", "recall", "f1", "examples"]
        tables.append(Table(f"Classes on {part}", header, classes))
    early, late = records.mean_weights(0, 0.1), records.mean_weights(0.5, 1)
    weights = [[n, early[n], late[n], records.rounds[-1].weights[n]] for n in records.objectives]
    losses = [[name, ys[0], min(ys), ys[-1]] for name, (_, ys) in losses_of(run).items()]
    stages = [
        [
            *(name, stage.objective, stage.steps, stage.best_step),
            *(stage.log_likelihood.before, stage.log_likelihood.after),
        ]
        for name, stage in run.outcome.pretraining.items()
    ]
    texts = [[name, source.texts, source.cut] for name, source in records.data.sources.items()]
    plugins = [
        [p.distribution, p.version, p.status, "yes" if p.distribution in used else ""]
        for p in run.plugins.plugins
    ]
    options = [[name, _setting(value)] for name, value in run.options.items()]
    times = ["first tenth", "last half", "at the end"]
    likelihoods = ["log-likelihood before", "after"]
    tables += [
        Table("Weights of objectives", ["objective", *times], weights),
        Table("Losses", ["task", "first", "lowest", "last"], losses),
        Table("Pre-training", ["stage", "objective", "steps", "best step", *likelihoods], stages),
        _examples_table(run),
        Table("Texts of objectives", ["data", "texts", "cut to fit"], texts),
        Table("Plug-ins", ["distribution", "version", "status", "used"], plugins),
        Table("Configuration", ["option", "value"], options),
    ]
    return [table for table in tables if table.rows]


def _examples_table(run: Run) -> Table:
    data = run.records.data
    parts, weights = data.parts.values(), data.class_weights
    rows: list[list[Any]] = [
        [label, *(p.labels[label] for p in parts)] for label in run.records.evaluation.labels
    ]
    counts: dict[str, list[Any]] = {
        "all": [p.examples for p in parts],
        "cut to fit": [p.cut for p in parts],
        "left out": [p.left_out for p in parts],
    }
    rows += [[name, *of] for name, of in counts.items() if name != "left out" or any(of)]
    if weights:
        rows = [[*row, weights.get(row[0])] for row in rows]
    header = ["class", *data.parts, *(["weight in the loss"] if weights else [])]
    return Table("Examples by class", header, rows)


def _scores_table(run: Run) -> Table:
    parts = run.records.evaluation.parts
    names = list(run.records.evaluation.dev.scores)
    rows = [[name, *(part.shown(name) for part in parts.values())] for name in names]
    others = {f"the {run.outcome.baseline}": run.outcome.majority, **run.outcome.controls}
    for name, scores in others.items():
        shown = [shown_score(scores.on(part), run.metric) for part in parts]
        rows.append([f"{run.metric} of {name}", *shown])
    head = "score, 95% interval" if run.outcome.metric.intervals else "score"
    return Table("Scores", [head, *parts], rows)


def _tables_of_several(runs: Sequence[Run]) -> list[Table]:
    header = ["run", "weighter", "space", "seed", "metric", "dev", "test", "best step", "seconds"]
    rows = []
    for name, run in zip(run_names(runs), runs, strict=True):
        of = run.outcome
        # Numbers, so that readers can sort by them.
        dev = None if of.trained_on_dev else of.metric.dev
        scores = [None if s is None else 100 * s for s in (dev, of.metric.test)]
        last = (of.best_step, round(of.all_seconds))
        rows.append([name, of.weighter, of.space, of.seed, run.metric, *scores, *last])
    return [Table("Runs", header, rows)]


def _setting(value: Any) -> str:
    if value in (None, [], {}):
        return "–"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
