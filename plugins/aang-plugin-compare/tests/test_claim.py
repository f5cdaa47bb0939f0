"""Attempts at a run: one counts, and what the others leave behind is taken over."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from types import SimpleNamespace

import pytest
from aang_plugin_compare import leashed
from aang_plugin_compare.claim import (
    ask_to_end,
    attempts_so_far,
    await_end_of_others,
    claim_file,
    is_overtaken,
    lay_claim,
    read_claim,
)
from aang_plugin_compare.launcher import Order
from aang_plugin_compare.on_node import Site, complaint

from aang_core import LockedError
from tests.support.storage import LOCK, Holder, locked, process_start


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def claimed_by(path: Path, *holders: Holder) -> None:
    """Attempts of processes that were there before."""
    write(path, {"attempt": len(holders), "node": "b", "holders": [vars(h) for h in holders]})


ELSEWHERE = Holder(os.getpid(), "elsewhere", "1")


def test_a_later_attempt_counts_and_an_earlier_one_cannot_come_back(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    assert read_claim(path) is None
    lay_claim(path, 1, "a")
    assert not is_overtaken(path, 1)
    lay_claim(path, 2, "b")
    assert is_overtaken(path, 1)
    assert not is_overtaken(path, 2)
    with pytest.raises(LockedError, match="attempt 1 is outdated; attempt 2 is running on b"):
        lay_claim(path, 1, "a")
    path.write_text("", encoding="utf-8")
    assert not is_overtaken(path, 1), "one that is just being written says nothing"


def test_the_lock_of_a_machine_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    claimed_by(tmp_path / "claim.json", ELSEWHERE)
    write(tmp_path / LOCK, vars(ELSEWHERE))
    await_end_of_others(tmp_path, lay_claim(tmp_path / "claim.json", 2, "a"), grace=0.2)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text()) == vars(Holder.this())


def test_the_lock_of_somebody_else_stands(tmp_path: Path) -> None:
    """Such as that of ``aang train --resume``, typed on another machine."""
    write(tmp_path / LOCK, vars(ELSEWHERE))
    claimed_by(tmp_path / "claim.json", Holder(1, "third", "1"))
    await_end_of_others(tmp_path, lay_claim(tmp_path / "claim.json", 2, "a"), grace=0.2)
    with pytest.raises(LockedError, match="on elsewhere"), locked(tmp_path):
        pass


def test_a_process_of_this_machine_is_waited_for(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    holder = Holder(other.pid, socket.gethostname(), process_start(other.pid) or "")
    claimed_by(tmp_path / "claim.json", holder)
    write(tmp_path / LOCK, vars(holder))
    claim = lay_claim(tmp_path / "claim.json", 2, "a")
    begin = time.monotonic()
    await_end_of_others(tmp_path, claim, grace=0.2)
    assert time.monotonic() - begin >= 0.2
    other.communicate("")
    await_end_of_others(tmp_path, claim)
    with locked(tmp_path):
        pass


def test_a_claim_is_laid_before_torch_is_loaded() -> None:
    """Which takes seconds, in which nobody would know of the attempt."""
    loads = "import sys, aang_plugin_compare.leashed; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", loads], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


class OneAttempt:
    """An attempt at a run in this process, whose training waits for signals.

    What is sent to its process only arrives at :meth:`told`: a signal of its leash would end the
    tests. ``stdin`` is the end that the process which started it holds.

    order: the run. during: what happens while it trains; called by its training.
    """

    def __init__(self, patched: pytest.MonkeyPatch, folder: Path) -> None:
        self.order = Order("run", folder / "run", folder / "options.yaml", folder / "log.txt")
        self.order.options.write_text("from-scratch: true\nprecision: fp32\n")
        self.during: Callable[[], None] = lambda: None
        self._signals: Queue[int] = Queue()
        self._others = set(threading.enumerate())
        reads, writes = os.pipe()
        self._input, self.stdin = os.fdopen(reads), os.fdopen(writes, "w")
        patched.setattr("sys.stdin", self._input)
        system = SimpleNamespace(kill=self._keep, getpid=os.getpid, read=os.read)
        patched.setattr(leashed, "os", system)
        patched.setattr(leashed, "LOOK_SECONDS", 0.01)
        patched.setattr(leashed, "main", lambda arguments: self.during())

    def _keep(self, process: int, number: int) -> None:
        self._signals.put(number)

    def begin(self, attempt: int) -> None:
        leashed.train(self.order, attempt, "a")

    def told(self, within: float = 60) -> int | None:
        """The next signal; None if there is none in so many seconds."""
        try:
            return self._signals.get(timeout=within)
        except Empty:
            return None

    def close(self) -> None:
        """Wait until nothing is left that could send a signal."""
        self.stdin.close()
        for thread in set(threading.enumerate()) - self._others:
            thread.join(60)
        self._input.close()


@pytest.fixture
def one_attempt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[OneAttempt]:
    attempt = OneAttempt(monkeypatch, tmp_path)
    yield attempt
    attempt.close()


def test_it_is_killed_when_its_input_closes(one_attempt: OneAttempt) -> None:
    def during() -> None:
        assert one_attempt.told(within=0.05) is None
        one_attempt.stdin.close()
        assert one_attempt.told() == signal.SIGKILL

    one_attempt.during = during
    one_attempt.begin(1)


def test_it_is_killed_when_it_is_overtaken(
    one_attempt: OneAttempt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And cannot begin afterwards."""

    def during() -> None:
        assert one_attempt.told(within=0.05) is None
        lay_claim(tmp_path / "log.claim.json", 2, "b")
        assert one_attempt.told() == signal.SIGKILL

    one_attempt.during = during
    one_attempt.begin(1)
    with pytest.raises(SystemExit, match="2"):
        one_attempt.begin(1)
    assert "attempt 1 is outdated" in capsys.readouterr().err
    assert one_attempt.told() == signal.SIGKILL


def test_it_is_asked_once_by_a_mark(one_attempt: OneAttempt) -> None:
    """One for another attempt means nothing."""

    def during() -> None:
        assert one_attempt.told(within=0.05) is None
        ask_to_end(one_attempt.order.log, 7)
        assert one_attempt.told() == signal.SIGTERM
        assert one_attempt.told(within=0.05) is None

    ask_to_end(one_attempt.order.log, 6)
    one_attempt.during = during
    one_attempt.begin(7)


@contextmanager
def training(tmp_path: Path, attempt: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A training that would take hours, begun."""
    order = Order("run", tmp_path / "run", tmp_path / "options.yaml", tmp_path / "log.txt")
    order.options.write_text("from-scratch: true\nsteps: 100000\nmax-length: 16\n")
    with (
        order.log.open("ab") as log,
        subprocess.Popen(
            order.command(attempt, "a"), stdin=subprocess.PIPE, stdout=log, stderr=log
        ) as process,
    ):
        while read_claim(tmp_path / "log.claim.json") is None:
            assert process.poll() is None, order.log.read_text()
        yield process


@pytest.mark.full
def test_it_ends_with_what_started_it(tmp_path: Path) -> None:
    with training(tmp_path, 1) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.full
def test_it_ends_when_it_is_overtaken(tmp_path: Path) -> None:
    with training(tmp_path, 1) as process:
        lay_claim(tmp_path / "log.claim.json", 2, "b")
        assert process.wait(timeout=60) == -signal.SIGKILL
    with training(tmp_path, 1) as process:
        assert process.wait(timeout=60) in (2, -signal.SIGKILL)
    assert not (tmp_path / "run").exists()


@pytest.mark.full
def test_a_mark_asks_for_a_checkpoint_and_an_end(tmp_path: Path) -> None:
    """It is enough without any message; a mark for another attempt means nothing."""
    log = tmp_path / "log.txt"
    ask_to_end(log, 6)
    with training(tmp_path, 7) as process:
        while not (tmp_path / "run" / "weights.jsonl").exists():
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        ask_to_end(log, 7)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM, log.read_text()
    assert "SIGTERM" in log.read_text()
    assert list((tmp_path / "run" / "checkpoints").iterdir())


def test_an_attempt_that_was_stopped_before_it_began_counts(tmp_path: Path) -> None:
    """Otherwise the mark would stop the next one."""
    log = tmp_path / "log.txt"
    assert attempts_so_far(log) == 0
    lay_claim(claim_file(log), 2, "a")
    assert attempts_so_far(log) == 2
    ask_to_end(log, 3)
    assert attempts_so_far(log) == 3


def test_a_node_that_sees_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site.here(tmp_path)
    with locked(tmp_path):
        assert complaint(site) == ""
    # A folder of the same name, and no lock of that process in it. It waits for one as long as a
    # shared file system may need; the clock does not.
    clock = Clock()
    monkeypatch.setattr("aang_plugin_compare.on_node.time", clock)
    why = complaint(site)
    assert 4 < clock.monotonic() < 6
    assert "does not see" in why
    assert "that all nodes share" in why


class Clock:
    """Stands in for ``time``: its seconds pass when somebody sleeps, at once."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def test_a_node_with_another_version(tmp_path: Path) -> None:
    here = Site.here(tmp_path)
    other = Site(here.root, here.directory, here.holder, "0.0.1")
    assert "and not 0.0.1; install the same version" in complaint(other)
