"""One writer in a folder: the lock, whose process it names, and what is left of dead ones."""

import errno
import fcntl
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from aang_core import ConfigError, LockedError
from tests.support.storage import (
    HELD,
    LOCK,
    Holder,
    RunFolder,
    holder_of,
    locked,
    process_start,
    refuse_if_locked,
    take_from,
)


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
    assert f"process {dead.pid} has ended without removing its lock" in caplog.text
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


def test_a_container_with_a_name_of_its_own_that_is_gone(tmp_path: Path) -> None:
    """Its processes cannot be seen; the kernel, which is the same, says that none has the lock."""
    write(tmp_path, replace(Holder.this(), host="another-name"))
    refuse_if_locked(tmp_path)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text()) == vars(Holder.this())


def namespaces() -> bool:
    """Whether this user may make PID namespaces, as containers have them."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


_UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


@pytest.mark.skipif(not namespaces(), reason="no PID namespaces here")
def test_a_living_process_of_another_container_keeps_its_lock(tmp_path: Path) -> None:
    """It has this host's name, and its number is that of nobody, or of somebody else, here."""
    with subprocess.Popen(
        [*_UNSHARE, "--kill-child", sys.executable, "-c", _TAKE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as container:
        assert answer(container) == "ready"
        assert answer(container, "\n") == "mine"
        holder = Holder.of(json.loads((tmp_path / LOCK).read_text()))
        assert holder.pid < 10
        assert holder.host == socket.gethostname()
        for refused in (lambda: refuse_if_locked(tmp_path), locked(tmp_path).__enter__):
            with pytest.raises(LockedError, match="wait for it, or stop it first") as raised:
                refused()
            assert "remove" not in str(raised.value)
        container.kill()
        container.wait()
    until_free(tmp_path)
    with locked(tmp_path):
        pass


def until_free(folder: Path) -> None:
    """Wait until the kernel has ended a process that was killed."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with suppress(LockedError):
            refuse_if_locked(folder)
            return


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "{}", "7", '{"pid": 1}x', '{"pid": 1}', '{"pid": "x", "host": "a"}'),
    ],
)
def test_a_lock_that_names_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path):
        assert holder_of(tmp_path) == Holder.this()


@pytest.fixture
def without_kernel_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Lustre mounted without ``flock``."""

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("without_kernel_locks")
def test_without_kernel_locks_a_file_in_the_folder_keeps_others_out(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(LockedError, match=f"process {os.getpid()} "), locked(tmp_path):
            pass
        with pytest.raises(LockedError):
            refuse_if_locked(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_kernel_locks")
def test_without_kernel_locks_that_of_a_lost_machine_can_be_taken(tmp_path: Path) -> None:
    lost = Holder(os.getpid(), "elsewhere", "1")
    (tmp_path / HELD).write_text(f"{lost.pid}\n{lost.host}\n")
    write(tmp_path, lost)
    with pytest.raises(LockedError, match="on elsewhere"), locked(tmp_path):
        pass
    take_from(tmp_path, lost)
    with locked(tmp_path):
        pass


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


def answer(process: "subprocess.Popen[str]", asked: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(asked)
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_of_many_that_find_a_stale_lock_one_gets_it(tmp_path: Path) -> None:
    write(tmp_path, Holder(2**22 + 1, socket.gethostname(), "long ago"))
    command = [sys.executable, "-c", _TAKE, str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]

    for process in processes:
        assert answer(process) == "ready"
    with ThreadPoolExecutor(len(processes)) as pool:
        answers = list(pool.map(answer, processes, ["\n"] * 6))
    assert sorted(answers) == ["mine", *["refused"] * 5]
    for process in processes:
        process.communicate("\n")
    assert not (tmp_path / LOCK).exists()


_RACE = """
import sys, time
from pathlib import Path
from aang_core.errors import LockedError
from aang_core.storage.lock import locked, refuse_if_locked
for line in sys.stdin:
    folder, begin = line.split()
    while time.monotonic() < float(begin):
        pass
    try:
        refuse_if_locked(Path(folder))
        with locked(Path(folder)):
            print("mine", flush=True)
            sys.stdin.readline()
    except LockedError:
        print("refused", flush=True)
    else:
        print("released", flush=True)
"""


@pytest.mark.parametrize("trials", [40, pytest.param(600, marks=pytest.mark.release)])
def test_two_that_find_a_stale_lock_at_once_never_both_get_it(tmp_path: Path, trials: int) -> None:
    """As two processes that resume a killed run: one gets it, the other does not."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    holder = replace(Holder.this(), pid=dead.pid, started="earlier")
    command = [sys.executable, "-P", "-c", _RACE]
    two = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    random = Random(0)
    got = []
    with ThreadPoolExecutor(2) as pool:
        for trial in range(trials):
            folder = tmp_path / str(trial)
            folder.mkdir()
            write(folder, holder)
            begin = time.monotonic() + 0.002
            # Up to a millisecond apart, so that they meet at every point of the takeover.
            starts = [begin, begin + random.choice((-1, 1)) * random.random() ** 2 / 1000]
            asked = [f"{folder} {start}\n" for start in starts]
            answers = list(pool.map(answer, two, asked))
            assert sorted(answers) == ["mine", "refused"], (trial, answers)
            got.append(answers.index("mine"))
            assert answer(two[got[-1]], "\n") == "released"
            assert not list(folder.iterdir())
    assert set(got) == {0, 1}
    for process in two:
        process.communicate()
