"""What a launcher is given, and the message about a failed run."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from aang_plugin_compare.launcher import LocalLauncher, Order
from aang_plugin_compare.leashed import arguments_with_precision
from aang_plugin_compare.run_folders import run_state
from aang_plugin_compare.runner import Runs

from aang_core import ConfigError, load_plugins
from tests.support.runs import (
    TrainConfig,
    left_to_the_data,
    read_config_file,
    resolve_training,
)


def ordered(root: Path, folder: Path, config: TrainConfig) -> Order:
    """What a launcher is given to train a run with these options."""
    return Runs(root, LocalLauncher(), load_plugins(environ={}).registry).order(folder, config)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("step 1\nError: no room\nTo go on:\n    aang train --resume r\n", "Error: no room"),
        ("Traceback\nValueError: odd\n", "ValueError: odd"),
        ("", "it said nothing"),
    ],
)
def test_its_last_words(tmp_path: Path, said: str, words: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(said, encoding="utf-8")
    order = Order("a/b/seed-0", tmp_path / "r", tmp_path / "r.yaml", log)
    assert order.failure(2) == f"{words} (exit status 2; {log})"
    assert order.failure(2, "n1") == f"{words} (exit status 2 on n1; {log})"


def test_the_default_recipe_is_left_to_the_run(tmp_path: Path) -> None:
    """It gives way to an end task that it cannot have, and nobody has read the data yet."""
    registry = load_plugins(environ={}).registry
    asked = {"lr": 1e-4, "set": {"static": {"n": 3}}}
    config = resolve_training(asked, {}, registry)
    folder = Path("runs/task/method/seed-0")
    order = ordered(tmp_path, folder, config)
    order.begin_log(1, "this machine")
    with order.log.open("a") as log:
        log.write("Error: of the first\n")
    order = ordered(tmp_path, folder, config)
    order.begin_log(2, "this machine")
    assert order.log.read_text().splitlines()[1] == "Error: of the first"
    assert order.failure(-9).startswith("it said nothing (exit status -9")
    written = read_config_file(order.options)
    assert not {"recipe", "space", "weighter", "task_type", "metric"} & set(written)
    assert resolve_training(written, {}, registry) == config
    named = resolve_training({**asked, "recipe": "contrast"}, {}, registry)
    assert read_config_file(ordered(tmp_path, folder, named).options)["recipe"] == "contrast"


@pytest.mark.parametrize(
    "asked",
    [
        {"recipe": "aang-td", "task_clip": None},
        {"recipe": "aang-td"},
        {"weighter": "single-task", "dropout": None, "train": "a.jsonl", "metric": "accuracy"},
        {"task_clip": None, "set": {"static": {"n": 3}}},
        {"task_type": "multi-label", "scale_rows": 0.5},
        {"aux_task": {"other": "o.csv"}, "target": "other", "set": {"other": {"dev": "d.csv"}}},
    ],
)
def test_a_run_is_trained_with_the_options_that_were_planned(
    tmp_path: Path, asked: dict[str, object]
) -> None:
    """A null says that an option has no value, whatever the recipe gives it."""
    registry = load_plugins(environ={}).registry
    config = resolve_training(asked, {}, registry)
    order = ordered(tmp_path, Path("runs/task/method/seed-0"), config)
    trained = resolve_training(read_config_file(order.options), {}, registry)
    assert trained.model_dump() == config.model_dump()
    assert left_to_the_data(trained) == left_to_the_data(config)


@pytest.mark.parametrize(
    ("over", "state"),
    [
        ({}, "interrupted"),
        ({"recipe": None, "space": "td", "weighter": "factored", "set": {}}, "interrupted"),
        ({"recipe": None, "space": "td", "weighter": "static", "set": {}}, "weighter"),
        ({"space": "td+c"}, "space"),
        ({"recipe": "simcse"}, "recipe"),
        ({"recipe": None, "space": "td", "weighter": "factored", "lr": 0.1}, "set and lr"),
    ],
)
def test_a_run_may_have_the_default_recipe_or_none(
    tmp_path: Path, over: dict[str, object], state: str
) -> None:
    registry = load_plugins(environ={}).registry
    config = resolve_training({"task_type": "multi-label"}, {}, registry)
    recorded = config.model_copy(update=over).model_dump(mode="json", exclude_none=True)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recorded))
    if state == "interrupted":
        assert run_state(tmp_path, config, registry) == state
    else:
        with pytest.raises(ConfigError, match=f"this run differs in {state}"):
            run_state(tmp_path, config, registry)


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """A run whose process is any command: see :func:`runs_as`."""
    return Order("a", tmp_path / "runs" / "a", tmp_path / "a.yaml", tmp_path / "a.txt")


def runs_as(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    monkeypatch.setattr(Order, "command", lambda *asked: list(command))


def test_processes_share_the_cores_and_wait_asleep(
    monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    """Unless the user has chosen otherwise."""
    runs_as(monkeypatch, "sh", "-c", "echo $OMP_NUM_THREADS $OMP_WAIT_POLICY")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    assert LocalLauncher(3).train(order) is None
    assert order.log.read_text().splitlines() == ["attempt 1 on this machine", "2 passive"]
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert LocalLauncher(3).train(order) is None
    assert order.log.read_text().splitlines()[-1] == "5 active"


def test_a_process_that_fails_is_told_by_its_last_error(
    monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    runs_as(monkeypatch, "sh", "-c", "echo Error: no room >&2; exit 2")
    assert LocalLauncher().train(order) == f"Error: no room (exit status 2; {order.log})"


def test_a_process_is_asked_to_end(monkeypatch: pytest.MonkeyPatch, order: Order) -> None:
    """One alone, or all of them and those that would begin; it may say more before it ends."""
    waits = "trap 'echo asked; exit 7' TERM; echo begun; while true; do sleep 0.01; done"
    runs_as(monkeypatch, "sh", "-c", waits)
    launcher = LocalLauncher(2)
    assert not launcher.end(order)
    other = replace(order, folder=order.folder.with_name("b"), log=order.log.with_name("b.txt"))
    with ThreadPoolExecutor(2) as pool:
        trainings = [pool.submit(launcher.train, order), pool.submit(launcher.train, other)]
        while not all(o.log.exists() and "begun" in o.log.read_text() for o in (order, other)):
            assert not any(training.done() for training in trainings)
            time.sleep(0.005)
        # A process may speak before its launcher has noted it.
        while not launcher.end(order):
            time.sleep(0.005)
        assert trainings[0].result(60) == f"asked (exit status 7; {order.log})"
        assert not trainings[1].done()
        launcher.stop()
        assert trainings[1].result(60) == f"asked (exit status 7; {other.log})"
    # It may be asked before it listens, but never runs on.
    assert "exit status" in str(launcher.train(order))


def test_all_runs_take_the_precision_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever machine trains them; ``auto`` alone would be another one on each."""
    registry = load_plugins(environ={}).registry

    def added(seed: int, instructions: str, **options: object) -> list[str]:
        capabilities = {instructions: True}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
        config = resolve_training({"device": "cpu", **options}, {}, registry)
        order = ordered(tmp_path, Path(f"runs/task/method/seed-{seed}"), config)
        arguments = arguments_with_precision(order)
        return list(arguments[len(order.arguments) :])

    assert added(0, "avx512_bf16") == ["--precision", "bf16"]
    assert added(1, "avx2") == ["--precision", "bf16"]
    assert added(2, "avx2", precision="fp32") == []
    resumed = tmp_path / "runs" / "task" / "method" / "seed-3"
    resumed.mkdir(parents=True)
    (resumed / "config.yaml").touch()
    assert added(3, "avx2") == [], "it keeps its own"
