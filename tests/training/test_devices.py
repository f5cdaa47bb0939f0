"""``--device``: names that exist nowhere, that this machine lacks, and several processes; cores."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from aang_core import ConfigError
from tests.clusters import free_port
from tests.support.runs import choose_device, choose_training_device
from tests.support.training import devices
from tests.training.conftest import Aang
from tests.training.launching import ROOT


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that says that it has two; nothing computes on them."""
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda")
    )
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "zeros", lambda *shape, device: None)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    def be(rank: int, size: int) -> None:
        for name, value in (("LOCAL_RANK", rank), ("WORLD_SIZE", size), ("LOCAL_WORLD_SIZE", size)):
            monkeypatch.setenv(name, str(value))

    return be


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("warp", "is not the name of a device"),
        ("", "is not the name of a device"),
        ("meta", "computes no numbers"),
        ("vulkan", "not available here: Could not run .* backend"),
    ],
)
def test_a_device_that_cannot_be_used_is_told_in_one_line(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^--device {name}: {said}; this machine has ") as error:
        choose_device(name)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.usefixtures("two_gpus")
def test_a_number_that_no_gpu_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^--device cuda:7: does not exist; this machine has cpu, cuda:0 and cuda:1$",
    ):
        choose_device("cuda:7")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device("cpu:3") == torch.device("cpu")


@pytest.mark.usefixtures("two_gpus")
def test_each_process_gets_a_gpu_of_its_own(process: Callable[[int, int], None]) -> None:
    process(1, 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 1)
    with pytest.raises(
        ConfigError, match=r"cuda:1: is one device, .* 2 processes .* --device cuda"
    ):
        choose_device("cuda:1")
    process(2, 3)
    with pytest.raises(ConfigError, match="process 3 on a machine with 2; start at most 2 here"):
        choose_device("auto")


def test_a_mac_trains_on_its_cpu_and_predicts_on_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing computes on the device here; the machine only says that it has one."""
    mps = torch.device("mps", 0)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: mps)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    monkeypatch.setattr(torch, "zeros", lambda *shape, device: None)
    assert choose_device("auto") == choose_device("mps:0") == mps
    assert choose_training_device("auto") == torch.device("cpu")
    with pytest.raises(ConfigError, match=r"^the device mps:0 can predict but not train, "):
        choose_training_device("mps:0")


_JOIN = """
import sys
from aang_core.errors import AangError
from aang.runs.training import join
try:
    join(sys.argv[1])
except AangError as error:
    print(error)
"""
_ON_THAT_OF = """
import torch
from aang.runs import training
training.choose_device = torch.device
"""
"""A machine that has every device; none of them computes anything before the processes join."""


_CHECK = """
import sys
from aang.config import resolve_config
from aang_core.errors import AangError
from aang_core.plugins import load_plugins
from aang.runs.before import check
registry = load_plugins().registry
try:
    check(resolve_config({}, {"device": "cpu", "log": sys.argv[1].split()}, registry), registry)
except AangError as error:
    print(error)
"""


def said_by(*devices: str, before: str = "", script: str = _JOIN) -> list[str]:
    """What processes that nothing watches over say, one for each device or other argument."""
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", before + script, device],
            cwd=ROOT,
            env={
                **os.environ,
                **{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(devices))},
                **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, device in enumerate(devices)
    ]
    return [process.communicate(timeout=300)[0] for process in started]


@pytest.mark.full
def test_processes_on_different_kinds_of_devices_are_told_at_once() -> None:
    """Where each would wait for the other's messages for half an hour."""
    for said in said_by("cpu", "cuda", before=_ON_THAT_OF):
        assert "different kinds of devices (0 on cpu, 1 on cuda); give --device cpu" in said


@pytest.mark.full
@pytest.mark.parametrize("devices", [("cpu", "cuda:7"), ("cuda:7", "cpu")])
def test_the_others_hear_why_a_process_cannot_take_part(devices: tuple[str, str]) -> None:
    """Where they would wait for it, also if it would have served their meeting."""
    bad = devices.index("cuda:7")
    said = said_by(*devices)
    assert said[bad].startswith("--device cuda:7: ")
    assert said[1 - bad] == f"process {bad} of 2 cannot take part: {said[bad]}"


@pytest.mark.full
def test_an_option_that_one_machine_cannot_use_ends_all() -> None:
    """Such as a tracker, a compiler or a precision that the others have."""
    first, second = said_by("", "nobody", script=_CHECK)
    assert first == second
    assert first.startswith("process 1 of 2, on ")
    assert "--log nobody: there is no such tracker" in first


def test_a_run_takes_no_more_threads_than_cores(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so and records it; the next one in this process has as many as before."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(devices, "cpu_count", lambda: 2)
    torch.set_num_threads(3)
    run = tmp_path / "run"
    done = aang("train", *train_options, "--space", "tapt", "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    assert "computes with 2 threads and not 3; OMP_NUM_THREADS gives another number" in done.err
    assert json.loads((run / "inputs.json").read_text())["threads"] == 2
    assert torch.get_num_threads() == 3


def test_a_number_of_threads_that_the_user_gives_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(devices, "cpu_count", lambda: 2)
    torch.set_num_threads(3)
    with devices.on_usable_cores() as told:
        assert (told, torch.get_num_threads()) == (None, 3)
