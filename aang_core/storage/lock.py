"""One writer at a time: a file that says which process works in a folder."""

import fcntl
import json
import logging
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from aang_core.errors import LockedError
from aang_core.storage.durable import sync, writing

LOCK = "lock.json"
_WRITING_SECONDS = 2.0
"""How long a lock may be empty because its process is about to write it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """A process.

    started: when it started, in whatever terms this system has; tells it from a later process with
        the same number. Empty if the system does not say.
    """

    pid: int
    host: str
    started: str

    @classmethod
    def this(cls) -> "Holder":
        """The process that asks."""
        return cls(os.getpid(), socket.gethostname(), process_start(os.getpid()) or "")

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, one of this host."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it ran on this host and does so no more."""
        if not self.is_here:
            return False
        now = process_start(self.pid)
        return now is None or bool(self.started and now and now != self.started)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which exists, meanwhile.

    The lock of a process that is gone is taken over, and a warning says so.

    Raises:
        LockedError: another process holds it.
        StorageError: the lock cannot be written.
    """
    path = folder / LOCK
    with writing(path):
        _acquire(path)
    try:
        yield
    finally:
        if _read(path) == Holder.this():
            path.unlink(missing_ok=True)


def refuse_if_locked(folder: Path) -> None:
    """See that no living process holds the lock of ``folder``, before any work is done.

    Raises:
        LockedError: one does.
    """
    holder = _read(folder / LOCK)
    if holder is not None and not holder.is_gone:
        raise _refusal(folder, holder)


def holder_of(folder: Path) -> Holder | None:
    """Who holds the lock of ``folder``; None if nobody does."""
    return _read(folder / LOCK)


def take_from(folder: Path, holder: Holder) -> None:
    """Remove the lock of ``folder`` if ``holder`` has it: a process that is known to be gone.

    For one of another host, which cannot be seen from here.
    """
    if _read(folder / LOCK) == holder:
        with suppress(FileNotFoundError):
            _remove(folder / LOCK, holder)


def _acquire(path: Path) -> None:
    content = json.dumps(asdict(Holder.this())).encode()
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            _clear_away(path)
            continue
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        sync(path.parent)
        return


def _clear_away(path: Path) -> None:
    """Remove the lock of a process that is gone.

    Raises:
        LockedError: the process is not gone.
    """
    holder = _settled(path)
    if holder is not None and not holder.is_gone:
        raise _refusal(path.parent, holder)
    with suppress(FileNotFoundError):
        _remove(path, holder)


def _remove(path: Path, holder: Holder | None) -> None:
    with path.open("rb") as stale:
        # Of several processes that find the lock stale, one may remove it; the others must not
        # remove the lock that this one then makes.
        with suppress(OSError):
            fcntl.flock(stale, fcntl.LOCK_EX)
        if not os.path.samestat(os.fstat(stale.fileno()), path.stat()):
            return
        path.unlink()
    whose = "a process" if holder is None else f"process {holder.pid}"
    _log.warning("%s: %s that is gone left its lock, which is taken over", path.parent, whose)


def _settled(path: Path) -> Holder | None:
    """Who holds the lock; None if it stays empty, its process having died before it wrote."""
    end = time.monotonic() + _WRITING_SECONDS
    while True:
        holder = _read(path)
        if holder is not None or time.monotonic() >= end or not path.exists():
            return holder
        time.sleep(0.01)


def _read(path: Path) -> Holder | None:
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _refusal(folder: Path, holder: Holder) -> LockedError:
    if holder.is_here:
        advice = "wait for it, or stop it first"
    else:
        advice = (
            f"wait for it; if it runs no more on {holder.host}, which cannot be seen from here, "
            f"remove {folder / LOCK}"
        )
    return LockedError(
        f"{folder}: process {holder.pid} on {holder.host} is writing there; {advice}"
    )


def process_start(pid: int) -> str | None:
    """When a process of this host started; None if there is no such process, empty if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return _start_without_proc(pid)
    # The second field is a name in parentheses, which may itself hold spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot} {fields[18]}"


def _start_without_proc(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    with suppress(OSError):
        asked = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return ""
