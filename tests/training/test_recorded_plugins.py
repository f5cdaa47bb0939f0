"""The plug-ins that a run recorded are compared with those installed: on evaluate and resume."""

import json
from pathlib import Path
from typing import Any

import pytest

from aang_core import Origin, Plugins, Registry
from tests.support.plugins import PluginRecord, Status, plugin_differences
from tests.training.conftest import Aang

PLUGIN = """
from aang_core import Corruption, hookimpl, select_tokens

class Mine:
    def __call__(self, ids, ordinary, vocabulary, generator):
        selected = select_tokens(ordinary, generator)
        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)

@hookimpl
def aang_register_transforms(register):
    register("mine", "masks", Mine)
"""


def test_evaluate_and_resume_say_what_differs(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """A file's version is its content: a comment more is another version."""
    plugin, run = tmp_path / "mine.py", tmp_path / "run"
    plugin.write_text(PLUGIN, encoding="utf-8")
    done = aang(
        *("--plugin", plugin, "train", *train_options, "--steps", 1, "--quiet", "--out", run),
        *("--space", "task/mine/bidirectional/denoise"),
    )
    assert done.status == 0, done.err
    before = recorded(run)
    assert before["changes"] == []
    (run / "result.json").rename(tmp_path / "result.json")

    same = aang("--plugin", plugin, "train", "--resume", run, "--quiet")
    assert same.status == 0, same.err
    assert "the run used" not in same.err
    assert recorded(run) == before

    (run / "result.json").unlink()
    plugin.write_text(PLUGIN + "# another version\n", encoding="utf-8")
    resumed = aang("--plugin", plugin, "train", "--resume", run)
    assert resumed.status == 0, resumed.err
    then, now = version(before), version(recorded(run))
    note = f"the run used mine.py {then}; installed is {now}"
    assert then != now
    assert f"note: {note}\n" in resumed.err
    assert recorded(run)["changes"] == [note]

    done = aang("evaluate", run, "--data", task_files / "test.jsonl")
    assert done.status == 0, done.err
    assert f"note: the run used mine.py {now}; it is not installed now\n" in done.err
    done = aang("--plugin", plugin, "evaluate", run, "--data", task_files / "test.jsonl")
    assert "the run used" not in done.err


@pytest.mark.parametrize("content", ["{", '{"x": 1}', "[]", '{"plugins": [7], "primitives": {}}'])
def test_a_damaged_record_is_told(aang: Aang, tmp_path: Path, content: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("steps: 3\n", encoding="utf-8")
    (run / "plugins.json").write_text(content, encoding="utf-8")
    done = aang("train", "--resume", run)
    assert done.status == 2
    (error,) = [line for line in done.err.splitlines() if not line.startswith("reading data")]
    assert "plugins.json: is damaged" in error


def recorded(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "plugins.json").read_text(encoding="utf-8"))
    return found


def version(plugins: dict[str, Any]) -> str:
    (found,) = [p["version"] for p in plugins["plugins"] if p["distribution"] == "mine.py"]
    return str(found)


@pytest.mark.parametrize(
    ("installed", "says"),
    [
        ([("aang-core", "1", "ok"), ("a", "1", "ok")], []),
        ([("aang-core", "1", "ok"), ("a", "2", "ok")], ["the run used a 1; installed is 2"]),
        ([("aang-core", "1", "ok")], ["the run used a 1; it is not installed now"]),
        (
            [("aang-core", "1", "ok"), ("a", "1", "disabled")],
            ["the run used a 1; it is disabled now; see aang plugins"],
        ),
        (
            [("aang-core", "2", "ok"), ("a", "1", "ok"), ("unused", "7", "ok")],
            ["the run used aang-core 1; installed is 2"],
        ),
    ],
)
def test_differences(installed: list[tuple[str, str, Status]], says: list[str]) -> None:
    """Of the core and of plug-ins with a primitive in the run, loaded now or not."""
    record = {
        "plugins": [
            {"distribution": name, "version": "1", "status": "ok"}
            for name in ("aang-core", "a", "unused")
        ],
        "primitives": {"transform/mine": "a"},
    }
    records = tuple(PluginRecord(Origin(name, v, name), status) for name, v, status in installed)
    assert plugin_differences(record, Plugins(Registry(), records)) == says
