"""``--unlabelled``: trained on where a space reads it, without dev and test, and nowhere else."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from aang import train

from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.launching import finished, flat, launch
from tests.training.resuming import after_lines, everything, kill
from tests.training.trainers import assert_goes_on

AGREE = "unlabelled/mask/bidirectional/consistency"
STATIC = ("--weighter", "static", "--set", "consistency.threshold=0")
DRAWN = ("--train-rows", 24, "--seed", 3, "--unlabelled", "rest")


@pytest.fixture(scope="session")
def texts(task_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty texts, and one each of dev and test in capitals."""
    lines = (task_files / "domain.txt").read_text(encoding="utf-8").splitlines()[:40]
    for part in ("dev", "test"):
        row = (task_files / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()[7]
        lines.insert(20, json.loads(row)["text"].upper())
    path = tmp_path_factory.mktemp("unlabelled") / "texts.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(run: Path, name: str) -> Any:
    return json.loads((run / name).read_text(encoding="utf-8"))


def test_the_space_of_it(
    aang: Aang, train_options: list[object], texts: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    options = (*train_options, "--space", "td+u", "--unlabelled", texts, "--out", run)
    done = aang("train", *options, "--set", "factored.n=12", "--steps", 2, "--eval-every", 2)
    assert done.status == 0, done.err
    data = read(run, "data.json")
    assert data["sources"]["unlabelled"]["texts"] == 40
    left_out = [note for note in data["notes"] if "left out" in note]
    places = [("in test", f"{texts}:21"), ("in dev", f"{texts}:22")]
    assert all(part in note for note, parts in zip(left_out, places, strict=True) for part in parts)
    assert left_out[0] in done.err
    assert read(run, "plugins.json")["primitives"]["data/unlabelled"] == "aang-plugin-task"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "The data 'unlabelled' reads text like the end task's own, and none was named"),
        (("--unlabelled", "none.txt"), "--unlabelled none.txt: no such file or folder"),
        (("--unlabelled", "rest"), "--unlabelled rest is the training rows that --train-rows"),
        ((*DRAWN, "--train-rows", 96), "--train-rows takes all 96 training rows"),
        (("--unlabelled", ".", "--set", "unlabelled.limit=0"), "unlabelled.limit is 0"),
    ],
)
def test_what_cannot_be(
    aang: Aang, train_options: list[object], tmp_path: Path, options: tuple[object, ...], said: str
) -> None:
    """One clear error, and no run folder."""
    run = tmp_path / "run"
    done = aang("train", *train_options, "--space", AGREE, *STATIC, *options, "--out", run)
    assert done.status == 2
    assert said in done.err
    assert done.err.count("Error") == 1
    assert "Traceback" not in done.err
    assert not run.exists()


def test_the_rest_of_a_draw(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """Each seed's labelled rows and its rest are all of the training data."""
    run = tmp_path / "run"
    options = (*train_options, *DRAWN, "--space", AGREE, *STATIC, "--steps", 2, "--eval-every", 2)
    done = aang("train", *options, "--out", run)
    assert done.status == 0, done.err
    assert read(run, "data.json")["sources"]["unlabelled"]["texts"] == 96 - 24
    assert len(read(run, "train_rows.json")["rows"]) == 24
    assert "unlabelled:\n- rest\n" in (run / "config.yaml").read_text(encoding="utf-8")


def test_from_python(encoder: Path, texts: Path, tmp_path: Path) -> None:
    """One place need not be in a list. The task has no text of the file in dev."""
    train_file = tmp_path / "mood.csv"
    rows = [f"text {i} of the task,{'ab'[i % 2]}" for i in range(40)]
    train_file.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    run = train(
        train=train_file,
        unlabelled=texts,
        space=AGREE,
        weighter="static",
        model=str(encoder),
        max_length=16,
        steps=2,
        batch_size=4,
        aux_batch_size=4,
        out=tmp_path / "run",
    )
    assert run.records.data.sources["unlabelled"].texts == 42


@pytest.mark.full
def test_two_processes_train_the_model_of_one(
    aang: Aang, train_options: list[object], texts: Path, tmp_path: Path
) -> None:
    """The encoder has no dropout, which draws by process."""
    options = [*train_options, "--space", AGREE, *STATIC, "--unlabelled", texts, "--quiet"]
    options = ["train", *options, "--dropout", 0, "--head-dropout", 0]
    done = aang(*options, "--out", tmp_path / "one")
    assert done.status == 0, done.err
    several = finished(launch(2, *options, "--out", tmp_path / "two"))
    assert several.returncode == 0, several.stderr
    assert read(tmp_path / "two", "data.json") == read(tmp_path / "one", "data.json")
    one, two = (read(tmp_path / name, "evaluation.json") for name in ("one", "two"))
    assert flat(two) == pytest.approx(flat(one), abs=1e-6)


@pytest.mark.parametrize("stream", [False, True])
def test_it_goes_on_from_a_checkpoint(
    options: dict[str, Any], texts: Path, tmp_path: Path, *, stream: bool
) -> None:
    """Bit by bit, in a stream as well, of which every step sees a part."""
    settings = {"consistency": {"threshold": 0}}
    settings |= {"unlabelled": {"stream": True, "buffer": 9}} if stream else {}
    more = {"space": AGREE, "weighter": "static", "unlabelled": texts, "set": settings}
    assert_goes_on({**options, **more}, tmp_path / "checkpoint", rounds=7, at=4)


@pytest.mark.full
@pytest.mark.parametrize("stream", [False, True])
def test_killed_and_resumed(
    forks: Forks, small: list[object], texts: Path, tmp_path: Path, *, stream: bool
) -> None:
    """Bit for bit as if it had not been, in a stream as well, of which every step sees a part."""
    options = [*small, "--space", AGREE, *STATIC, "--unlabelled", texts]
    if stream:
        options += ["--set", "unlabelled.stream=true", "--set", "unlabelled.buffer=9"]
    whole, run = tmp_path / "whole", tmp_path / "run"
    child = forks.aang(*options, "--out", whole)
    assert child.wait() == 0, child.said
    child = forks.aang(*options, "--out", run)
    child.when(after_lines(run / "weights.jsonl", 5))
    kill(child)
    child = forks.aang("train", "--resume", run)
    child.when(after_lines(run / "weights.jsonl", 9))
    child.signal(signal.SIGTERM)
    child.wait()
    child = forks.aang("train", "--resume", run, "--quiet")
    assert child.wait() == 0, child.said
    assert everything(run) == everything(whole)
    state = json.loads(str(everything(run)["state"]))
    if stream:
        # A block of 9 holds the 8 rows of a step. After 16 of the 40 texts: 128 = 3 · 40 + 8.
        assert state["streams"]["unlabelled"] == {"pass": 4, "given": 8}
