"""``aang report``: several runs, pictures, and folders that are not runs."""

import html
import json
import resource
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from aang import Run
from aang_plugin_report.charts import Bars, Chart, Heat, Lines, Series
from aang_plugin_report.comparison import bars_of
from aang_plugin_report.drawing import plotly_json
from aang_plugin_report.figures import charts_of, charts_of_several, fractions_on_top

from aang_core.cli import main


def aang(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out, captured.err


def test_a_page_of_several_runs(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Both are called "run", as those of a comparison are called "seed-0".
    other = shutil.copytree(run, tmp_path / "other" / run.name)
    page = tmp_path / "both.html"
    status, out, err = aang(capsys, "report", run, other, "--out", page)
    assert status == 0, err
    assert "both.html" in out
    text = page.read_text(encoding="utf-8")
    assert "2 runs" in text
    assert "among the top 5" in text
    assert f"other/{run.name}" in text


def test_figures_of_several_runs(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures"
    status, _, err = aang(capsys, "report", run, run, "--figures", figures)
    assert status == 0, err
    assert {path.name for path in figures.iterdir()} == {
        f"{key}.{kind}" for key in ("scores", "end-task-weight", "tops") for kind in ("png", "svg")
    }


@pytest.mark.full
def test_figures_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All its charts: `draw_picture` draws one of each kind in the default tests."""
    status, _, _ = aang(capsys, "report", run, "--figures", tmp_path / "one")
    assert status == 0
    assert (tmp_path / "one" / "cosines.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_runs_with_different_metrics_have_a_chart_each(
    run: Path, report_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = tmp_path / "lengths.jsonl"
    rows = [{"text": f"word {'long ' * (i % 5)}", "label": i % 5 + 0.5} for i in range(40)]
    lengths.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    status, _, err = aang(
        *(capsys, "train", "--train", lengths, "--weighter", "single-task", "--steps", 2),
        *("--eval-every", 1, "--model", report_encoder, "--out", tmp_path / "run", "--quiet"),
    )
    assert status == 0, err
    status, _, err = aang(capsys, "report", run, tmp_path / "run", "--out", tmp_path / "both.html")
    assert status == 0, err
    opened = [Run.open(run), Run.open(tmp_path / "run")]
    drawn = {chart.key: chart for chart in charts_of_several(opened)}
    for one, metric in zip(opened, ("macro-f1", "spearman"), strict=True):
        chart = drawn[f"scores-{metric}"]
        assert isinstance(chart, Lines)
        (series,) = chart.series
        assert list(series.y) == [100 * line.dev[metric] for line in one.records.evaluations]


def test_scores_of_dev_rows_that_were_trained_on_are_not_beside_others(run: Path) -> None:
    record = Run.open(run)
    outcome = record.outcome.model_copy(update={"trained_on_dev": True})
    charts = charts_of_several([record, replace(record, outcome=outcome)])
    (scores,) = (chart for chart in charts if chart.key == "scores")
    assert len(scores.series) == 1


def test_what_the_charts_show_is_what_the_run_wrote(run: Path) -> None:
    record = Run.open(run)
    charts = {chart.key: chart for chart in charts_of(record)}
    weights = [json.loads(line) for line in (run / "weights.jsonl").read_text().splitlines()]
    late = weights[6:]
    ranking = charts["ranking"]
    name = ranking.labels[0]
    mean = sum(line["weights"][name] for line in late) / len(late)
    assert ranking.groups[0][1][0] == pytest.approx(mean)
    assert mean == pytest.approx(max(record.records.mean_weights(0.5, 1).values()))
    for stage in ("transform", "representation", "output"):
        curves = charts[f"factors-{stage}"].series
        for values in zip(*(curve.y for curve in curves), strict=True):
            assert sum(values) == pytest.approx(1)
    rows = charts["cosines"].z
    column = [row[0] for row in rows if row[0] is not None]
    # The default dev head measures nothing in the first two steps.
    assert ["cosines" in line for line in weights] == [False] * 2 + [True] * 10
    assert sorted(column) == pytest.approx(sorted(weights[2]["cosines"].values()))
    confusion = charts["confusion-test"].z
    assert sum(map(sum, confusion)) == 48
    tops = {chart.key: chart for chart in charts_of_several([record, record])}["tops"]
    assert sum(v == 1.0 for v in tops.groups[0][1]) == 5


def test_equal_weights_share_the_places_on_top() -> None:
    """Otherwise the first objectives of a space would be the best ones of every static run."""
    static = {f"o{i}": 1 / 10 for i in range(10)}
    assert fractions_on_top([static]) == pytest.approx(dict.fromkeys(static, 0.5))
    learned = {**static, "o9": 0.3, "o8": 0.2}
    found = fractions_on_top([learned])
    assert (found["o9"], found["o8"], found["o0"]) == pytest.approx((1.0, 1.0, 3 / 8))
    assert sum(found.values()) == pytest.approx(5)


def test_the_weight_of_every_task_over_steps(run: Path) -> None:
    """The end task's, and those of the twelve objectives that weigh most in the last half."""
    record = Run.open(run)
    chart = {chart.key: chart for chart in charts_of(record)}["weights"]
    assert isinstance(chart, Lines)
    late = record.records.mean_weights(0.5, 1)
    heaviest = sorted(late, key=lambda name: -late[name])[:12]
    assert {series.name for series in chart.series} == {"end-task", *heaviest}
    for series in chart.series:
        assert list(series.x) == list(range(1, 13))
        assert list(series.y) == record.weights[series.name].tolist()


def with_domain_text(run: Path, folder: Path, texts: int, seed: int, test: float) -> Path:
    """The run as if it had read in-domain text, with another seed and test score."""
    shutil.copytree(run, folder)
    data = json.loads((folder / "data.json").read_text())
    data["sources"]["s2orc"] = {"texts": texts, "cut": 0}
    (folder / "data.json").write_text(json.dumps(data))
    result = json.loads((folder / "result.json").read_text())
    result["metric"]["test"] = test
    (folder / "result.json").write_text(json.dumps(result))
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(config.replace("seed: 0", f"seed: {seed}"))
    return folder


def test_a_comparison_and_its_scores_over_in_domain_text(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, figures = tmp_path / "comparison", tmp_path / "figures"
    folders = [
        with_domain_text(
            run, root / "runs" / f"t-{texts}" / "m" / f"seed-{seed}", texts, seed, test
        )
        for texts, seed, test in ((100, 0, 0.25), (100, 1, 0.75), (1000, 0, 0.5))
    ]
    row = {"task": "t", "metric": "macro-f1", "dev": [0.1, 0.3], "on_dev": False, "seeds": [0, 1]}
    table = [
        {**row, "method": "base", "test": [0.5, 0.75], "permutation": None},
        {**row, "method": "m", "test": [0.25, 0.75], "permutation": 0.25},
        {**row, "method": "unfinished", "dev": [], "test": [], "permutation": None},
    ]
    (root / "table.json").write_text(json.dumps(table))
    (bars,) = bars_of(root)
    assert list(bars.labels) == ["base 62.50 ± 17.68", "m 50.00 ± 35.36 (0.250)"]
    assert bars.groups == [("test", [62.5, 50.0])]
    (second,) = bars_of(root, 1)
    assert (bars.key, second.key) == ("results-t", "results-1-t")
    assert second.title == f"{root}, {bars.title}"
    charts = {chart.key: chart for chart in charts_of_several([Run.open(f) for f in folders])}
    chart = charts["domain-text-macro-f1"]
    assert isinstance(chart, Lines)
    (curve,) = chart.series
    assert curve.name.endswith(", factored over td")
    assert (list(curve.x), list(curve.y)) == ([100, 1000], [50.0, 50.0])
    assert [(high - low) / 2 for low, high in curve.intervals] == pytest.approx([25 * 2**0.5, 0])
    streamed = shutil.copytree(folders[2], tmp_path / "streamed")
    config = yaml.safe_load((streamed / "config.yaml").read_text())
    config |= {"set": {"s2orc": {"stream": True}}}
    (streamed / "config.yaml").write_text(yaml.safe_dump(config))
    # The texts of a stream's buffer are not those that it has read.
    kept = charts_of_several([Run.open(folder) for folder in (folders[0], streamed)])
    assert "domain-text-macro-f1" not in {chart.key for chart in kept}
    status, _, err = aang(capsys, "report", root, "--figures", figures)
    assert status == 0, err
    assert {"results-t.png", "domain-text-macro-f1.png"} <= {p.name for p in figures.iterdir()}
    shown = (figures / "domain-text-macro-f1.svg").read_text(encoding="utf-8")
    assert "<!-- 1,000 -->" in shown
    (root / "table.json").write_text("[{}]")
    status, _, err = aang(capsys, "report", root)
    assert status == 2
    assert f"{root / 'table.json'}: is damaged" in err


def damage(folder: Path, name: str) -> None:
    if name == "not a run":
        (folder / "config.yaml").unlink()
    elif name == "incomplete":
        (folder / "result.json").unlink()
    elif name == "another version":
        (folder / "evaluation.json").unlink()
    else:
        (folder / "data.json").write_text("{oops", encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("not a run", "is not a run folder"),
        ("incomplete", "did not finish"),
        ("another version", "another version"),
        ("damaged", "damaged"),
    ],
)
def test_folders_that_cannot_be_reported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, said: str
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    damage(folder, case)
    (folder / "report.html").unlink()
    status, _, err = aang(capsys, "report", folder)
    assert status == 2
    assert said in err
    assert str(folder) in err
    assert not (folder / "report.html").exists()


ACTING = ["<b>bold</b>", '<a href="https://example.com">link</a>', "&lt;", "$x^2$", "<br>"]


@pytest.mark.parametrize("kind", ["lines", "bars", "heat"])
def test_names_in_charts_do_not_act(kind: str) -> None:
    """Plotly reads tags, entities and formulas; what reaches it has none, and shows the same."""
    many: Sequence[float] = [1.0] * len(ACTING)
    chart: Chart
    said = {"key": "k", "title": "t", "alt": "alt"}
    if kind == "lines":
        chart = Lines(**said, series=[Series(name, [1], [1]) for name in ACTING])
        shown = [trace["name"] for trace in plotly_json(chart)["data"]]
    elif kind == "bars":
        chart = Bars(**said, labels=ACTING, groups=[("group", many)])
        shown = plotly_json(chart)["data"][0]["y"]
    else:
        chart = Heat(**said, x=ACTING, y=ACTING, z=[many] * len(ACTING))
        shown = plotly_json(chart)["data"][0]["x"]
        assert plotly_json(chart)["data"][0]["y"] == shown
    assert [html.unescape(name) for name in shown] == ACTING
    assert not set("<>$") & set("".join(shown))


def test_a_full_disk_leaves_no_part_of_a_page_or_picture(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, page = tmp_path / "figures", tmp_path / "page.html"
    page.write_text("the old one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        drawn = aang(capsys, "report", run, "--figures", figures)
        written = aang(capsys, "report", run, "--out", page)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert drawn[0] == written[0] == 2
    assert f"cannot write {figures}" in drawn[2]
    assert "File too large. Allow larger files" in drawn[2]
    assert f"cannot write {page}: File too large" in written[2]
    assert page.read_text() == "the old one"
    left = [path for path in figures.iterdir() if path.stat().st_size >= 20_000]
    assert not left
    assert not list(tmp_path.rglob(".*.tmp"))
