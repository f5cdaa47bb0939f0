"""One writer in a folder: the lock, whose process it names, and what is left of dead ones."""

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aang_core.errors import ConfigError, LockedError
from aang_core.storage.lock import LOCK, Holder, locked, process_start, refuse_if_locked
from aang_core.storage.run_folder import RunFolder


@pytest.fixture
def another() -> Iterator["subprocess.Popen[str]"]:
    """A process that lives until the end of the test."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    yield process
    process.communicate("")


def write(folder: Path, holder: Holder) -> None:
    (folder / LOCK).write_text(json.dumps(vars(holder)), encoding="utf-8")


def test_the_second_is_refused_with_pid_and_host_of_the_first(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(LockedError) as raised, locked(tmp_path):
            pass
        with pytest.raises(LockedError):
            refuse_if_locked(tmp_path)
        assert f"process {os.getpid()} on {socket.gethostname()}" in str(raised.value)
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()
    refuse_if_locked(tmp_path)


def test_a_living_process_keeps_its_lock(tmp_path: Path, another: "subprocess.Popen[str]") -> None:
    write(tmp_path, Holder(another.pid, socket.gethostname(), process_start(another.pid) or ""))
    with pytest.raises(LockedError, match=f"process {another.pid}"), locked(tmp_path):
        pass


def test_the_lock_of_a_dead_process_is_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    started = process_start(dead.pid) or ""
    # Not waited for yet: a process that is over and still has its number is gone as well.
    while not Holder(dead.pid, socket.gethostname(), started).is_gone:
        pass
    write(tmp_path, Holder(dead.pid, socket.gethostname(), started))
    with caplog.at_level(logging.WARNING), locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text()) == vars(Holder.this())
    assert f"process {dead.pid} has ended and left its lock" in caplog.text
    dead.wait()
    assert process_start(dead.pid) is None


def test_a_number_that_was_given_to_another_process(
    tmp_path: Path, another: "subprocess.Popen[str]"
) -> None:
    write(tmp_path, Holder(another.pid, socket.gethostname(), "another boot 17"))
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_process_of_another_host_cannot_be_seen(tmp_path: Path) -> None:
    """Its lock is kept, even if a local process has its number; the message says what to do."""
    write(tmp_path, Holder(os.getpid(), "elsewhere", "1"))
    with pytest.raises(LockedError, match=r"on elsewhere.*remove .*lock\.json"), locked(tmp_path):
        pass


def test_a_folder_whose_process_died_before_its_first_file(tmp_path: Path) -> None:
    """Nothing can be resumed there and nothing is lost: a run may begin in it again."""
    write(tmp_path, Holder(os.getpid(), socket.gethostname(), "earlier"))
    (tmp_path / ".config.yaml.tmp").touch()
    assert RunFolder.create(tmp_path).path == tmp_path
    (tmp_path / "config.yaml").touch()
    with pytest.raises(ConfigError, match="already holds files"):
        RunFolder.create(tmp_path)


def test_a_process_that_died_before_it_wrote_its_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


_TAKE = """
import sys
from pathlib import Path
from aang_core.errors import LockedError
from aang_core.storage.lock import locked
print("ready", flush=True)
input()
try:
    with locked(Path(sys.argv[1])):
        print("mine", flush=True)
        input()
except LockedError:
    print("refused", flush=True)
"""


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path: Path) -> None:
    write(tmp_path, Holder(2**22 + 1, socket.gethostname(), "long ago"))
    command = [sys.executable, "-c", _TAKE, str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]

    def answer(process: "subprocess.Popen[str]") -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(len(processes)) as pool:
        answers = list(pool.map(answer, processes))
    assert sorted(answers) == ["mine", *["refused"] * 5]
    for process in processes:
        process.communicate("\n")
    assert not (tmp_path / LOCK).exists()
