"""Several processes train the model that one would have trained."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.training import heads_with_dropout
from tests.training.conftest import Aang
from tests.training.launching import ROOT, children, finished, flat, launch, lines
from tests.training.several_processes import WEIGHTERS

WITHOUT_SIGNALS = (
    *("single-task", "static", "alpha-vil", "diw", "autosem", "factored-bandit"),
    *("pcgrad", "cagrad", "forkmerge", "tapweight"),
)


def run(folder: Path, processes: int) -> Path:
    """Train with a number of processes and return the run folder."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.training.several_processes", str(folder)]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
        command = [sys.executable, *launcher, "--standalone", *command[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("one") / "out", 1)


@pytest.mark.full
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_model_and_weights_are_those_of_one_process(
    one: Path, tmp_path: Path, processes: int
) -> None:
    """With 23 rows and batches of 7, 5 and 9, which no number of processes divides.

    The processes build different modules; all train the first one's.
    """
    several = run(tmp_path / "out", processes)
    for weighter in WEIGHTERS:
        for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-5)):
            expected = load_file(one / f"{weighter}-{dtype}-0.safetensors")
            assert len(expected["signals"]) > 10 or weighter in WITHOUT_SIGNALS
            for rank in range(processes):
                got = load_file(several / f"{weighter}-{dtype}-{rank}.safetensors")
                assert got.keys() == expected.keys()
                far = {
                    name: float((got[name] - value).abs().max())
                    for name, value in expected.items()
                    if value.numel()
                }
                assert max(far.values()) < tolerance, (weighter, dtype, rank, far)


@pytest.mark.full
def test_rows_that_differ_between_processes_are_refused() -> None:
    done = finished(launch(2, module="tests.training.different_rows"))
    assert done.returncode != 0
    assert "process 1 of 2" in done.stderr
    assert "the rows of task 'sign' are not those of process 0" in done.stderr


@pytest.mark.full
def test_processes_stay_together_where_heads_drop_units(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """Each drops units of its own, so each sees another loss of what shares the end task's pass."""
    space = "end-task-rows/no-op/bidirectional/end-task"
    given = json.dumps({**options, "space": space, "dropout": 0.3}, default=str)
    (tmp_path / "options.json").write_text(given, encoding="utf-8")
    done = finished(launch(2, tmp_path, module="tests.training.heads_with_dropout"))
    assert done.returncode == 0, done.stderr
    for weighter in heads_with_dropout.WEIGHTERS:
        one, two = (load_file(tmp_path / f"{weighter}-{rank}.safetensors") for rank in (0, 1))
        assert len(one["losses"]) == 2
        apart = [name for name, value in one.items() if not torch.equal(value, two[name])]
        assert not apart, weighter


@pytest.fixture
def calm_options(train_options: list[object], encoder: Path, tmp_path: Path) -> list[object]:
    """The small training without dropout, which draws by process."""
    calm = tmp_path / "encoder"
    shutil.copytree(encoder, calm)
    settings = json.loads((calm / "config.json").read_text(encoding="utf-8"))
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (calm / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return [calm if option == encoder else option for option in train_options]


def begun(command: list[str]) -> subprocess.Popen[str]:
    """A command that is to be disturbed while it runs."""
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.full
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--draws-per-step", 2, "--weights-every", 2, "--final-fine-tuning", 1],
        ["--lora", 2, "--freeze-layers", 1],
        ["--class-weights", "balanced", "--micro-batch-size", 3],
        ["--class-weights", "xml=2.5", "--balanced-rows", "--dev-head", "drawn"],
        ["--train-on-dev", "--stop-after", 4, "--test-predictions"],
        ["log.yaml"],  # torchrun takes --log for an option of its own
    ],
    ids=["plain", "published", "adapters", "class-weights", "balanced-rows", "all-rows", "tracked"],
)
def test_one_command_line_one_run_folder(
    aang: Aang,
    calm_options: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: list[object],
) -> None:
    """The logs are those of one process; the model is too; only the first process speaks."""
    monkeypatch.chdir(tmp_path)
    Path("log.yaml").write_text("log: tensorboard\n", encoding="utf-8")
    options = ["train", *calm_options, "--space", "td", "--quiet", "--json", *more]
    assert aang(*options, "--out", tmp_path / "one").status == 0
    done = finished(launch(2, *options, "--out", tmp_path / "two"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["processes"] == 2
    logs = ["weights.jsonl", "metrics.jsonl"]
    logs += ["final-fine-tuning/metrics.jsonl"] if "--final-fine-tuning" in more else []
    logs += ["test_predictions.jsonl"] if "--test-predictions" in more else []
    for name in logs:
        pairs = zip(lines(tmp_path / "one" / name), lines(tmp_path / "two" / name), strict=True)
        for one, two in pairs:
            assert flat(two) == pytest.approx(flat(one), abs=1e-5)
    one = load_file(tmp_path / "one" / "model" / "model.safetensors")
    two = load_file(tmp_path / "two" / "model" / "model.safetensors")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=1e-5)


@pytest.mark.full
def test_three_go_on_where_two_were_stopped(calm_options: list[object], tmp_path: Path) -> None:
    """A signal to one process stops all of them, with a checkpoint that any number reads."""
    options = ["train", *calm_options, "--steps", 40, "--eval-every", 10, "--quiet", "--seed", 5]
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert finished(launch(2, *options, "--out", whole)).returncode == 0
    process = begun(launch(2, *options, "--out", run))
    wait_for_lines(run / "weights.jsonl", 5, process)
    os.kill(children(process.pid)[-1], signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert f"aang train --resume {run}" in errors
    stopped = len(lines(run / "weights.jsonl"))
    assert 5 <= stopped < 40
    done = finished(launch(3, "train", "--resume", run, "--quiet"))
    assert done.returncode == 0, done.stderr
    pairs = zip(lines(whole / "weights.jsonl"), lines(run / "weights.jsonl"), strict=True)
    for i, (one, two) in enumerate(pairs):
        # From where three add up in another order than two, forty steps in float32 drift apart.
        tolerance = 1e-5 if i < stopped else 1e-2
        assert flat(two) == pytest.approx(flat(one), abs=tolerance, rel=tolerance)


@pytest.mark.full
def test_a_process_that_dies_ends_the_run(calm_options: list[object], tmp_path: Path) -> None:
    """With a message and within the time that a message takes, not with a wait for ever."""
    options = ["train", *calm_options, "--steps", 10**6, "--patience", 10**6, "--quiet"]
    run = tmp_path / "run"
    process = begun(launch(2, *options, "--out", run))
    wait_for_lines(run / "weights.jsonl", 2, process)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "has died" in errors or "SIGKILL" in errors
    assert not (run / "result.json").exists()


@pytest.mark.full
def test_the_others_wait_as_long_as_the_first_works() -> None:
    """While it scores the model and writes it, which may take longer than torch's own limit."""
    done = finished(launch(2, "late", module="tests.training.waiting_processes"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["met", "met"]


@pytest.mark.full
@pytest.mark.parametrize(("first", "status"), [("failed", 1), ("dead", -signal.SIGKILL)])
def test_they_do_not_wait_for_a_process_that_has_ended(first: str, status: int) -> None:
    """Even if no launcher ends them: the connection to it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "tests.training.waiting_processes", first]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    both = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **place, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert both[0].returncode == status, errors[0]
    assert "another process of this training has died" in errors[1]


@pytest.mark.full
def test_no_thread_of_the_group_outlives_it() -> None:
    """One that did could need the interpreter while it exits, and would abort the program."""
    done = finished(launch(2, module="tests.training.leaving_processes"))
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert sum(line.startswith("joined: ['gloo_tcp_loop', 'pt_gloo_runloop'") for line in said) == 2
    assert said.count("left: []") == 2


@pytest.mark.full
def test_all_tasks_together_cannot_be_shared(calm_options: list[object], tmp_path: Path) -> None:
    done = finished(
        launch(2, "train", *calm_options, "--gradients", "packed", "--out", tmp_path / "run")
    )
    assert done.returncode != 0
    assert "--gradients packed: runs in one process" in done.stderr
    assert not (tmp_path / "run").exists()


def wait_for_lines(path: Path, n: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 180
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} did not get {n} lines")
