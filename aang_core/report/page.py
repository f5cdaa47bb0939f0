"""The page: one HTML file that needs nothing else."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang_core.report.drawing import draw_picture, plotly_json
from aang_core.report.figures import charts_of, charts_of_several
from aang_core.report.records import RunRecord
from aang_core.storage.durable import write_file


@dataclass(frozen=True)
class Table:
    """A table of the page, which sorts by any column."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


def write_page(runs: Sequence[RunRecord], path: Path) -> None:
    """Write the page of one run, or that of several together.

    Everything is inside: plotly.js, deflated, is taken out by the browser. Names and labels are
    escaped wherever they stand.
    """
    # Both take a while to import, and nothing else in AANG needs them.
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    several = len(runs) > 1
    charts = charts_of_several(runs) if several else charts_of(runs[0])
    tables = _tables_of_several(runs) if several else _tables(runs[0])
    drawn = {chart.key: plotly_json(chart) for chart in charts}
    templates = files("aang_core.report") / "templates"
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((templates / "page.html").read_text(encoding="utf-8"))
    packed = base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()
    text = template.render(
        title=f"{len(runs)} runs" if several else runs[0].name,
        facts=[] if several else _facts(runs[0]),
        charts=charts,
        tables=tables,
        notes=[] if several else runs[0].data["notes"],
        style=(templates / "page.css").read_text(encoding="utf-8"),
        script=(templates / "page.js").read_text(encoding="utf-8"),
        plotly=packed,
        # In a script element nothing is escaped but the end of the element must not occur.
        figures=json.dumps(drawn).replace("<", "\\u003c"),
    )
    write_file(path, text)


def write_figures(runs: Sequence[RunRecord], folder: Path) -> list[Path]:
    """Every chart as PNG and SVG in ``folder``; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = charts_of_several(runs) if len(runs) > 1 else charts_of(runs[0])
    paths = [folder / f"{chart.key}.{kind}" for chart in charts for kind in ("png", "svg")]
    for chart in charts:
        for kind in ("png", "svg"):
            draw_picture(chart, folder / f"{chart.key}.{kind}")
    return paths


def _facts(run: RunRecord) -> list[tuple[str, str]]:
    """The few figures at the head of the page."""
    metric, result = run.result["metric"], run.result
    scores = [("dev", metric["dev"]), ("test", metric["test"])]
    facts = [(f"{part} {run.metric}", f"{v:.4f}") for part, v in scores if v is not None]
    return [
        *facts,
        ("best step", f"{result['best_step']} of {result['steps']}"),
        ("weighter", str(result["weighter"])),
        ("objectives", str(result["objectives"])),
        ("time", _duration(result["train_seconds"])),
        ("peak memory", f"{result['peak_memory_bytes'] / 1e9:.2f} GB"),
    ]


def _tables(run: RunRecord) -> list[Table]:
    tables = [_scores_table(run)]
    for part in ("dev", "test"):
        if part in run.evaluation:
            classes: Mapping[str, Mapping[str, float]] = run.evaluation[part]["classes"]
            names = ("precision", "recall", "f1", "examples")
            rows = [[label, *(values[name] for name in names)] for label, values in classes.items()]
            tables.append(Table(f"Classes on {part}", ["class", *names], rows))
    if run.objectives:
        early, late = run.mean_weights(0, 0.1), run.mean_weights(0.5, 1)
        last = run.weights[-1]["weights"]
        rows = [[name, early[name], late[name], last[name]] for name in run.objectives]
        header = ["objective", "first tenth", "last half", "at the end"]
        tables.append(Table("Weights of objectives", header, rows))
    stages = run.result.get("pretraining") or {}
    if stages:
        header = ["stage", "objective", "steps", "best step", "log-likelihood before", "after"]
        rows = [
            [name, s["objective"], s["steps"], s["best_step"], *s["log-likelihood"].values()]
            for name, s in stages.items()
        ]
        tables.append(Table("Pre-training", header, rows))
    parts = run.data["parts"]
    rows = [
        [label, *(p["labels"][label] for p in parts.values())] for label in run.evaluation["labels"]
    ]
    rows += [["all", *(p["examples"] for p in parts.values())]]
    rows += [["cut to fit", *(p["cut"] for p in parts.values())]]
    tables.append(Table("Examples by class", ["class", *parts], rows))
    if run.data["sources"]:
        rows = [[name, s["texts"], s["cut"]] for name, s in run.data["sources"].items()]
        tables.append(Table("Texts of objectives", ["data", "texts", "cut to fit"], rows))
    used = set(run.plugins["primitives"].values())
    rows = [
        [p["distribution"], p["version"], p["status"], "yes" if p["distribution"] in used else ""]
        for p in run.plugins["plugins"]
    ]
    tables.append(Table("Plug-ins", ["distribution", "version", "status", "used"], rows))
    config = [[name, _setting(value)] for name, value in run.config.items()]
    tables.append(Table("Configuration", ["option", "value"], config))
    return tables


def _scores_table(run: RunRecord) -> Table:
    parts = [part for part in ("dev", "test") if part in run.evaluation]
    names = list(run.evaluation["dev"]["scores"])
    rows = [[name, *(run.evaluation[part]["scores"][name] for part in parts)] for name in names]
    majority = [run.result["majority"][part] for part in parts]
    rows.append([f"{run.metric} of the majority class", *majority])
    return Table("Scores", ["score", *parts], rows)


def _tables_of_several(runs: Sequence[RunRecord]) -> list[Table]:
    header = ["run", "weighter", "space", "seed", "dev", "test", "best step", "seconds"]
    rows = [
        [
            run.name,
            *(run.result[name] for name in ("weighter", "space", "seed")),
            run.result["metric"]["dev"],
            run.result["metric"]["test"],
            run.result["best_step"],
            run.result["train_seconds"],
        ]
        for run in runs
    ]
    return [Table("Runs", header, rows)]


def _setting(value: Any) -> str:
    if value in (None, [], {}):
        return "–"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
