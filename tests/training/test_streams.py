"""Training on text that is read as it is needed."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.training.conftest import Aang
from tests.training.forks import ROOT, Forks
from tests.training.resuming import after_lines, assert_same_stage, everything, kill

STREAM = ["--set", "s2orc.stream=true", "--set", "s2orc.buffer=20"]

CASES: dict[str, list[object]] = {
    "factored": [],
    "alpha-vil": [
        *("--weighter", "alpha-vil", "--steps", 60, "--eval-every", 5),
        *("--set", "alpha-vil.n=1", "--set", "alpha-vil.fraction=0.1"),
    ],
}


@pytest.fixture
def streamed(small: list[object], domain: list[object]) -> list[object]:
    """Few objectives on a stream, of which every third step sees another part."""
    return [*small, *domain, "--space", "dapt", *STREAM]


@pytest.mark.full
@pytest.mark.parametrize("case", ["factored", pytest.param("alpha-vil", marks=pytest.mark.full)])
def test_killed_and_resumed(
    aang: Aang, forks: Forks, streamed: list[object], tmp_path: Path, case: str
) -> None:
    """Bit for bit as if it had not been, the place in the stream included."""
    options = [*streamed, *CASES[case]]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 5))
    kill(child)
    child = forks.aang("train", "--resume", run)
    child.when(after_lines(run / "weights.jsonl", 9))
    # In a long round, what has been drawn since it began is drawn again.
    child.signal(signal.SIGTERM)
    child.wait()
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")
    state = json.loads(str(everything(run)["state"]))
    assert state["streams"]["s2orc"]["opened"]


@pytest.mark.full
def test_resumed_from_another_folder(
    aang: Aang,
    forks: Forks,
    small: list[object],
    task_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A relative path and an absolute one name the same place in the stream."""
    relative = os.path.relpath(task_files / "domain.txt", ROOT)
    options = [*small, "--domain", relative, "--space", "dapt", *STREAM, "--steps", 10]
    child = forks.aang(*options, "--out", tmp_path / "whole")
    assert child.wait() == 0, child.said
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 4))
    kill(child)
    assert not (run / "result.json").exists()
    monkeypatch.chdir(tmp_path)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert everything(run) == everything(tmp_path / "whole")


@pytest.mark.full
def test_every_text_has_its_turn_and_none_is_kept(
    aang: Aang,
    train_options: list[object],
    domain: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """80 texts in blocks of 20, four steps of five rows each: an epoch is 16 steps."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("AANG_CACHE", str(cache))
    options = [
        "train",
        *train_options,
        *domain,
        "--space",
        "dapt",
        *STREAM,
        "--aux-batch-size",
        5,
        "--quiet",
    ]
    positions = []
    for steps in (3, 4, 16):
        out = tmp_path / str(steps)
        done = aang(*options, "--checkpoint-every", 0, "--steps", steps, "--out", out)
        assert done.status == 0, done.err
        newest = max((out / "checkpoints").iterdir())
        state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
        positions.append(state["streams"]["s2orc"]["lanes"])
    assert positions == [[], [["0/domain.txt", 19]], [["0/domain.txt", 79]]]
    # Of the labelled parts alone: train, dev and test.
    assert len(list(cache.rglob("*.arrow"))) == 3


@pytest.mark.full
def test_a_stage_of_pretraining(
    aang: Aang, forks: Forks, train_options: list[object], domain: list[object], tmp_path: Path
) -> None:
    """Killed within it; and statistics of documents are those of the first block."""
    options = [
        *("train", *train_options, *domain, "--recipe", "dapt", "--steps", 4, "--quiet", *STREAM),
        *("--checkpoint-every", 0, "--set", "dapt.steps=12", "--set", "dapt.eval_every=2"),
        *("--set", "dapt.batch_size=8"),
    ]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "pretraining" / "dapt" / "metrics.jsonl", 4))
    kill(child)
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert_same_stage(run, tmp_path / "whole", "dapt")
    assert everything(run) == everything(tmp_path / "whole")


def test_statistics_of_documents(
    aang: Aang, train_options: list[object], domain: list[object], tmp_path: Path
) -> None:
    space = "s2orc/no-op/bidirectional/tf-idf"
    options = ["train", *train_options, *domain, "--space", space, *STREAM, "--quiet"]
    done = aang(*options, "--out", tmp_path / "run")
    assert done.status == 0, done.err


def test_a_domain_of_nothing(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    options = [*train_options, "--domain", empty]
    done = aang("train", *options, "--space", "dapt", *STREAM, "--out", tmp_path / "run")
    assert done.status == 2
    assert "no usable text" in done.err
    assert not (tmp_path / "run").exists()
