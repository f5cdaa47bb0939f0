"""``aang tune``: real trainings, in this process or in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests import in_process
from tests.in_process import Aang
from tests.one_layer_encoder import write_one_layer_encoder
from tests.support.storage import holder_of

SIZE = ["--max-length", "16", "--eval-every", "2", "--batch-size", "4", "--weighter", "single-task"]


@pytest.fixture
def aang(monkeypatch: pytest.MonkeyPatch) -> Aang:
    """``aang``, whose runs train in this process, too."""
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    return in_process.aang


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The option that names the smallest encoder."""
    encoder = tmp_path_factory.mktemp("encoder")
    write_one_layer_encoder(encoder)
    return ["--model", str(encoder)]


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    arguments = []
    for part in ("train", "dev", "test"):
        lines = [
            json.dumps({"text": f"{word} {part} number {i}", "label": word})
            for i in range(8)
            for word in ("alpha", "beta")
        ]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        arguments += [f"--{part}", str(tmp_path / f"{part}.jsonl")]
    return arguments


def test_no_run_of_the_search_reads_test(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    """A test file that cannot be read is no trouble until the best setting is refitted."""
    root, test = tmp_path / "search", tmp_path / "test.jsonl"
    whole = test.read_text()
    test.write_text(whole.replace('"beta"', "null"))
    command = [*in_process.NO_PAGE, "tune", "--search", "lr=1e-4,1e-3", "--out", root]
    task = ["--", *data, *model, *SIZE, "--steps", "4"]
    done = aang(*command, "--no-refit", *task)
    assert done.returncode == 0, done.stderr
    assert "trial-1: lr=" in done.stderr
    for number in (0, 1):
        run = root / "runs" / f"trial-{number}"
        options = yaml.safe_load((run / "config.yaml").read_text())
        assert options["test_score"] is False
        assert options["test"] is None
        assert set(json.loads((run / "data.json").read_text())["parts"]) == {"train", "dev"}
        assert json.loads((run / "result.json").read_text())["metric"]["test"] is None
        assert "test" not in json.loads((run / "evaluation.json").read_text())
        assert str(test) not in (root / "logs" / f"trial-{number}.yaml").read_text()
    refused = aang(*command, *task)
    assert refused.returncode == 2
    assert "column 'label' is null" in refused.stderr
    test.write_text(whole)
    done = aang(*command, "--format", "json", *task)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert table == json.loads((root / "table.json").read_text())
    assert [row["tried"] for row in table["methods"]] == [2]
    (refit,) = table["refits"]
    assert refit["dev"] == table["methods"][0]["dev"]
    assert refit["test"] is not None
    # Its test score is known now, so it cannot go on.
    refused = aang(*command, "--runs", "30", *task)
    assert refused.returncode == 2
    assert "--runs 30: this search ended with 20; its best setting was refitted" in refused.stderr
    dev = tmp_path / "dev.jsonl"
    dev.write_text(dev.read_text().replace("number 0", "number 9"))
    refused = aang(*command, *task)
    assert refused.returncode == 2
    assert "trial-0: the data has changed since this run" in refused.stderr


def test_the_default_recipe_gives_way_to_several_classes_a_text(
    aang: Aang, model: list[str], tmp_path: Path
) -> None:
    """As it does in ``aang train``; the table names what was trained."""
    rows = [{"text": f"text {i}", "label": ["odd" if i % 2 else "even", "any"]} for i in range(16)]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    command = [*in_process.NO_PAGE, "tune", "--search", "lr=1e-4,1e-3", "--runs", "1"]
    command += ["--out", tmp_path / "search"]
    task = ["--", "--train", path, *model, *SIZE[:-2], "--steps", "2"]
    done = aang(*command, "--no-refit", *task)
    assert done.returncode == 0, done.stderr
    done = aang(*command, "--format", "json", *task)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert table["metric"] == "macro-f1"
    assert [row["method"] for row in table["methods"]] == ["td factored"]
    assert len(table["refits"]) == 1


@pytest.mark.full
def test_a_kill_ends_its_runs_and_the_next_call_goes_on(data: list[str], tmp_path: Path) -> None:
    """Killed by SIGKILL, it can ask nothing of its runs; they end by themselves."""
    root = tmp_path / "search"
    command = ["tune", "--search", "lr=1e-4,1e-3", "--out", root, "--no-refit", "--runs", "1"]
    task = ["--", *data, *SIZE, "--steps", "40", "--patience", "99", "--checkpoint-every", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "aang_core", *map(str, [*command, *task])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    run = root / "runs" / "trial-0"
    deadline = time.monotonic() + 600
    while not (run / "weights.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    holder = holder_of(run)
    process.kill()
    process.wait()
    assert holder is not None
    while not holder.is_gone and time.monotonic() < deadline:
        time.sleep(0.05)
    assert holder.is_gone
    assert not (run / "result.json").exists()
    again = [sys.executable, "-m", "aang_core", *map(str, [*command, *task])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(again, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    lock, *told = done.stderr.splitlines()
    assert "has ended without removing its lock; the lock is removed" in lock
    assert [line.split(":")[0] for line in told] == ["trial-0"]
    assert len((run / "weights.jsonl").read_text().splitlines()) == 40
    assert not (run / "checkpoints").exists()


@pytest.mark.full
def test_an_interrupt_leaves_nothing_half_written(data: list[str], tmp_path: Path) -> None:
    """It says how to go on; its run has a checkpoint, and nothing is locked."""
    root = tmp_path / "search"
    command = ["tune", "--search", "lr=1e-4,1e-3", "--out", str(root)]
    task = ["--", *data, *SIZE, "--steps", "400", "--patience", "400"]
    process = subprocess.Popen(
        [sys.executable, "-m", "aang_core", *command, *task],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    run = root / "runs" / "trial-0"
    deadline = time.monotonic() + 600
    while not (run / "weights.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert f"aang tune --search lr=1e-4,1e-3 --out {root} -- --train" in said
    assert list((run / "checkpoints").iterdir())
    assert not list(root.rglob("lock.json"))
    assert (root / "journal.log").read_bytes().endswith(b"\n")
    assert not list(root.rglob("*.tmp"))


def test_after_an_interrupt_the_same_command_goes_on(
    aang: Aang,
    data: list[str],
    model: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says which; nothing is locked, and the trial that was stopped is trained first."""
    root = tmp_path / "search"
    command = [*in_process.NO_PAGE, "tune", "--search", "lr=1e-4,1e-3", "--out", root]
    command += ["--no-refit", "--runs", "1", "--", *data, *model, *SIZE, "--steps", "2"]
    with monkeypatch.context() as patched:
        patched.setattr(in_process.LAUNCHER, in_process.Interrupted)
        done = aang(*command)
    assert done.returncode == 130, done.stderr
    assert f"tune --search lr=1e-4,1e-3 --out {root}" in done.stderr
    assert not list(root.rglob("lock.json"))
    assert (root / "journal.log").read_bytes().endswith(b"\n")
    assert not list(root.rglob("*.tmp"))
    done = aang(*command)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["trial-0"]
    assert (root / "runs" / "trial-0" / "result.json").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--search", "lr=1e-3..1e-5"], "--search lr=1e-3..1e-5: 1e-3 is not less than"),
        (["--search", "lr=1e-5..1e-3", "--sampler", "grid"], "--sampler grid: a range has no list"),
        (["gone.yaml"], "gone.yaml cannot be read"),
        (["--search", "lr=1,2", "--address", "auto"], "--address: "),
    ],
)
def test_what_is_refused(arguments: list[str], told: str, tmp_path: Path) -> None:
    """No folder is made for it."""
    refused = in_process.aang("tune", *arguments, "--out", tmp_path / "search")
    assert refused.returncode == 2
    assert told in refused.stderr
    assert not (tmp_path / "search").exists()
