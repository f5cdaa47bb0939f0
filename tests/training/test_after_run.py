"""What plug-ins do when a run has ended, and what there is without the plug-in that reports it."""

import json
from pathlib import Path

import pytest
from aang import Run

from aang_core import ConfigError, load_plugins
from tests.support.plugins import DISABLE_VARIABLE
from tests.training.conftest import Aang

TRACKER = """
import json
from aang_core import hookimpl

@hookimpl
def aang_after_training(run):
    print("called")
    assert not (run.folder / "result.json").exists()
    seen = {
        "score": run.outcome.metric.dev,
        "scores": len(run.metrics),
        "rounds": len(run.records.rounds),
        "steps": run.config.steps,
        "model": type(run.model).__name__,
    }
    (run.folder / "seen.json").write_text(json.dumps(seen))
"""

BROKEN = """
from aang_core import hookimpl

@hookimpl
def aang_after_training(run):
    raise {error}
"""

SMALL = ("--weighter", "single-task", "--steps", 2, "--eval-every", 1, "--quiet")


def test_a_plugin_is_handed_the_run_before_it_is_finished(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    plugin, run = tmp_path / "tracker.py", tmp_path / "run"
    plugin.write_text(TRACKER, encoding="utf-8")
    done = aang("--plugin", plugin, "train", *train_options, *SMALL, "--json", "--out", run)
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert "failed" not in done.err
    assert "called" in done.err
    assert json.loads((run / "seen.json").read_text()) == {
        "score": result["metric"]["dev"],
        "scores": 3,
        "rounds": 2,
        "steps": 2,
        "model": "BertForSequenceClassification",
    }
    assert (run / "report.html").is_file()


@pytest.mark.parametrize(
    "error", ["ValueError('no such server')", "SystemExit('no such server')", "Exception('a\\nb')"]
)
def test_a_plugin_that_fails_does_not_lose_the_run(
    aang: Aang, train_options: list[object], tmp_path: Path, error: str
) -> None:
    plugin, run = tmp_path / "broken.py", tmp_path / "run"
    plugin.write_text(BROKEN.format(error=error), encoding="utf-8")
    done = aang("--plugin", plugin, "train", *train_options, *SMALL, "--json", "--out", run)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "broken" in line]
    assert line.startswith("note: plug-in broken")
    assert "failed after the run" in line
    assert error.partition("(")[0] in line
    assert f"{plugin}:6, in aang_after_training" in line
    assert Run.open(run).result["steps"] == 2
    assert (run / "report.html").is_file()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def aang_after_training(runs): pass",
            "{'runs'} are declared in the hookimpl but can not be found",
        ),
        ("def aang_after_training(run): yield", "must be a plain function, without yield or async"),
    ],
)
def test_hooks_of_the_wrong_form_are_refused(tmp_path: Path, code: str, says: str) -> None:
    plugin = tmp_path / "wrong.py"
    plugin.write_text(f"from aang_core import hookimpl\n@hookimpl\n{code}\n", encoding="utf-8")
    (failed,) = load_plugins(local=[str(plugin)]).failed
    assert says in str(failed.error)


def test_without_the_report(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else of a run is there, and what needs the plug-in says what to install."""
    run = tmp_path / "run"
    done = aang("--disable-plugin", "report", "train", *train_options, *SMALL, "--out", run)
    assert done.status == 0, done.err
    assert {path.name for path in run.iterdir()} == {
        *("config.yaml", "plugins.json", "metrics.jsonl", "weights.jsonl"),
        *("checkpoints", "model", "result.json"),
        *("cost.jsonl", "data.json", "inputs.json", "evaluation.json", "model.json"),
    }
    assert "## Scores" in (run / "model" / "README.md").read_text(encoding="utf-8")
    monkeypatch.setenv(DISABLE_VARIABLE, "report")
    opened = Run.open(run)
    assert len(opened.metrics) == 3
    with pytest.raises(ConfigError, match="aang-plugin-report is disabled"):
        opened.plot()
    done = aang("diagnose", *train_options[:4], "--plot", tmp_path / "figure.svg")
    assert done.status == 2
    assert "aang-plugin-report is disabled" in done.err
    done = aang("report", run)
    assert done.status == 2


def test_the_application_loads_nothing_that_draws() -> None:
    """It does not import what the report plug-in alone depends on."""
    import ast

    import aang as application

    for path in Path(application.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] not in ("plotly", "matplotlib"), path


PRINTS = """
from aang_core import hookimpl
from aang_core.tasks.weighting import SingleTask

print("when it is imported")

class Loud(SingleTask):
    def round(self, bench):
        print("while it trains")
        return super().round(bench)

@hookimpl
def aang_register_weighters(register):
    register("loud", "prints", Loud)
"""


def test_a_plugin_that_prints_does_not_spoil_json(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Standard output has the result alone; what plug-ins print goes to standard error."""
    plugin = tmp_path / "prints.py"
    plugin.write_text(PRINTS, encoding="utf-8")
    options = [*train_options, *SMALL, "--weighter", "loud", "--json"]
    done = aang("--plugin", plugin, "train", *options, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    assert json.loads(done.out)["weighter"] == "loud"
    assert "when it is imported" in done.err
    assert "while it trains" in done.err
