"""What a terminal shows of runs that train."""

import json
from io import StringIO
from pathlib import Path

import pytest
from aang_plugin_compare.cells import Job
from aang_plugin_compare.watching import Watching
from rich.console import Console

from tests.support.runs import TrainConfig


def test_a_bar_shows_the_last_score_and_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr("aang_plugin_compare.watching.Console", lambda stderr: console)
    job = Job(Path("runs", "words", "seed-0"), TrainConfig(steps=9))
    log = tmp_path / job.folder / "metrics.jsonl"
    watched = Watching(tmp_path, 1, quiet=False)
    with watched.bars:
        watched.began(job)
        watched.bars.refresh()
        log.parent.mkdir(parents=True)
        lines = [{"step": 3, "dev": {"macro-f1": 0.5}}, {"step": 6, "dev": {"macro-f1": 0.25}}]
        log.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        watched.bars.refresh()
        watched.ended(job)
        watched.say("[words]: done")
    text = shown.getvalue()
    assert "words/seed-0" in text
    assert "dev macro-f1 25.00, best 50.00" in text
    assert "[words]: done" in text
