"""Training on text that is read as it is needed."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.training import load_checkpoint, save_checkpoint
from tests.training.conftest import Aang
from tests.training.forks import ROOT, Forks
from tests.training.resuming import after_lines, assert_same_stage, everything, kill
from tests.training.trainers import build

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


@pytest.fixture
def in_blocks(options: dict[str, Any], task_files: Path) -> dict[str, Any]:
    """80 texts in blocks of 20."""
    settings = {"s2orc": {"stream": True, "buffer": 20}}
    domain = str(task_files / "domain.txt")
    return {**options, "space": "dapt", "domain": [domain], "set": settings}


@pytest.mark.parametrize("weighter", ["factored", "alpha-vil"])
def test_the_place_in_the_stream_is_restored(
    in_blocks: dict[str, Any], tmp_path: Path, weighter: str
) -> None:
    """The checkpoint is of the third block; a relative path and an absolute one name its text."""
    if weighter == "alpha-vil":
        in_blocks["set"]["alpha-vil"] = {"n": 1, "fraction": 0.1, "tuning_steps": 1}
    in_blocks["weighter"] = weighter
    (domain,) = in_blocks["domain"]
    whole = build(in_blocks, domain=[os.path.relpath(domain)])[2]
    states = []
    for _ in range(9):
        whole.weighter.round(whole.bench)
        states.append(json.loads(json.dumps(whole.bench.state_dict()["streams"])))
        if len(states) == 6:
            save_checkpoint(tmp_path / "checkpoint", whole)
    again = build(in_blocks, seed=99)[2]
    load_checkpoint(tmp_path / "checkpoint", again)
    for _ in range(3):
        again.weighter.round(again.bench)
    assert states[0] != states[5] != states[8]
    assert json.loads(json.dumps(again.bench.state_dict()["streams"])) == states[8]
    assert again.bench.last == whole.bench.last
    assert again.weighter.state_dict() == whole.weighter.state_dict()


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
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


def test_every_text_has_its_turn_and_none_is_kept(
    in_blocks: dict[str, Any], task_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four steps of five rows a block: an epoch is 16 steps."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("AANG_CACHE", str(cache))
    trainer = build(in_blocks, test=task_files / "test.jsonl", aux_batch_size=5, steps=16)[2]
    positions = {}
    for step in range(1, 17):
        trainer.weighter.round(trainer.bench)
        save_checkpoint(tmp_path / "checkpoint", trainer)
        state = json.loads((tmp_path / "checkpoint" / "state.json").read_text(encoding="utf-8"))
        positions[step] = state["streams"]["s2orc"]["lanes"]
    found = [positions[step] for step in (3, 4, 16)]
    assert found == [[], [["0/domain.txt", 19]], [["0/domain.txt", 79]]]
    # Of the labelled parts alone: train, dev and test.
    assert len(list(cache.rglob("*.safetensors"))) == 3


@pytest.mark.full
def test_a_stage_of_pretraining(
    aang: Aang, forks: Forks, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """Killed within it; and statistics of documents are those of the first block."""
    domain = Path(shutil.copy(task_files / "domain.txt", tmp_path))
    options = [
        *("train", *train_options, "--recipe", "dapt", "--steps", 4, "--quiet", *STREAM),
        *("--domain", domain),
        *("--checkpoint-every", 0, "--set", "dapt.steps=12", "--set", "dapt.eval_every=2"),
        *("--set", "dapt.batch_size=8"),
    ]
    done = aang(*options, "--out", tmp_path / "whole")
    assert done.status == 0, done.err
    run = tmp_path / "run"
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "pretraining" / "dapt" / "metrics.jsonl", 4))
    kill(child)
    text = domain.read_text(encoding="utf-8")
    domain.write_text("\n".join(reversed(text.splitlines())), encoding="utf-8")
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 2
    assert "the data has changed (s2orc)" in done.err
    domain.write_text(text, encoding="utf-8")
    done = aang("train", "--resume", run, "--quiet")
    assert done.status == 0, done.err
    assert_same_stage(run, tmp_path / "whole", "dapt")
    assert everything(run) == everything(tmp_path / "whole")


def test_statistics_of_documents(
    aang: Aang, train_options: list[object], domain: list[object], tmp_path: Path
) -> None:
    space = "s2orc/no-op/bidirectional/tf-idf"
    options = ["train", *train_options, *domain, "--space", space, *STREAM, "--quiet"]
    done = aang(*options, "--steps", 2, "--eval-every", 2, "--out", tmp_path / "run")
    assert done.status == 0, done.err


def test_a_domain_of_nothing(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    options = [*train_options, "--domain", empty]
    done = aang("train", *options, "--space", "dapt", *STREAM, "--out", tmp_path / "run")
    assert done.status == 2
    assert "no usable text" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stream", [[], STREAM], ids=["read once", "stream"])
def test_texts_of_dev_and_test_are_left_out(
    aang: Aang,
    small: list[object],
    task_files: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    stream: list[object],
) -> None:
    """Whatever their case; otherwise an objective would train on what the score is of."""
    dev, test = (
        [
            json.loads(line)["text"]
            for line in (task_files / f"{part}.jsonl").read_text("utf-8").splitlines()
        ]
        for part in ("dev", "test")
    )
    known = [dev[0], dev[1].upper(), *test[:3]]
    new = (task_files / "domain.txt").read_text(encoding="utf-8").splitlines()[:30]
    domain = tmp_path / "domain.txt"
    options = [*small, "--space", "dapt", *stream, "--domain", domain, "--steps", 4]
    domain.write_text("\n".join(known + new), encoding="utf-8")
    done = aang(*options, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    data = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    if stream:
        assert "s2orc: texts that are also in dev of the end task are left out" in caplog.text
    else:
        assert data["sources"]["s2orc"]["texts"] == len(new)
        assert any(
            "2 × text of s2orc that is also in the end task's dev" in n for n in data["notes"]
        )
    domain.write_text("\n".join(known), encoding="utf-8")
    done = aang(*options, "--out", tmp_path / "nothing")
    assert done.status == 2
    assert "also in dev or test of the end task. Nothing may train on those" in done.err
