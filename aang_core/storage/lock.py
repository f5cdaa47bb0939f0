"""One writer at a time: a locked file that names the process that writes in a folder.

filelock's kernel lock lets only one process in. The file also names process and host, for people to
read, and because hosts that share a file system need not share its locks.
"""

import errno
import json
import logging
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from aang_core.errors import LockedError
from aang_core.storage.durable import sync, writing

LOCK = "lock.json"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock.

    Attributes:
        pid: its number.
        host: the host that it runs on.
        started: when it started, in the system's own format, to distinguish it from a later process
            with the same number; empty if unknown.
    """

    pid: int
    host: str
    started: str

    @classmethod
    def this(cls) -> "Holder":
        """The current process."""
        return cls(os.getpid(), socket.gethostname(), process_start(os.getpid()) or "")

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this host."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether it ran on this host and has ended."""
        if not self.is_here:
            return False
        now = process_start(self.pid)
        return now is None or bool(self.started and now and now != self.started)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which must exist, during the block.

    The lock of a process that has ended is taken over, with a warning.

    Raises:
        LockedError: another process holds it.
        StorageError: the lock cannot be written.
    """
    path = folder / LOCK
    with _kernel_lock(path):
        before = _read(path)
        if before is not None and not before.is_gone:
            raise _refusal(folder, before)
        if before is not None:
            _log_takeover(folder, before)
        try:
            with writing(path):
                path.write_text(json.dumps(asdict(Holder.this())), encoding="utf-8")
                sync(path)
                sync(folder)
            yield
        finally:
            # On a full disk the file may be empty, which reads as None.
            if _read(path) in (Holder.this(), None):
                path.unlink(missing_ok=True)


def refuse_if_locked(folder: Path) -> None:
    """Refuse a folder that another process is writing in, before any work is done.

    Raises:
        LockedError: a running process holds the lock.
    """
    holder = _read(folder / LOCK)
    if holder is not None and not holder.is_gone:
        raise _refusal(folder, holder)


def holder_of(folder: Path) -> Holder | None:
    """The process that holds the lock of ``folder``; None if there is none."""
    return _read(folder / LOCK)


def take_from(folder: Path, holder: Holder) -> None:
    """Remove the lock of ``folder`` if ``holder`` has it, a process that is known to have ended.

    This is for a process on another host, whose state cannot be seen from here.
    """
    path = folder / LOCK
    if _read(path) != holder:
        return
    with suppress(LockedError), _kernel_lock(path):
        # Another process may have replaced the lock in the meantime.
        if _read(path) == holder:
            path.unlink()
            _log_takeover(folder, holder)


@contextmanager
def _kernel_lock(path: Path) -> Iterator[None]:
    """Lock the file ``path`` against other processes, if the file system can.

    Some file systems cannot, such as Lustre mounted without ``flock``. There the content of the
    file is the only protection.

    Raises:
        LockedError: another process has locked it.
        StorageError: the file cannot be opened.
    """
    lock = FileLock(path, blocking=False, mode=0o644, fallback_to_soft=False)
    with writing(path):
        try:
            lock.acquire()
        except Timeout:
            raise _refusal(path.parent, _read(path)) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                raise
    try:
        yield
    finally:
        lock.release()


def _log_takeover(folder: Path, holder: Holder) -> None:
    _log.warning(
        "%s: process %d has ended and left its lock, which is taken over", folder, holder.pid
    )


def _read(path: Path) -> Holder | None:
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _refusal(folder: Path, holder: Holder | None) -> LockedError:
    if holder is None or holder.is_gone:
        return LockedError(f"{folder}: another process has just begun to write there")
    if holder.is_here:
        advice = "wait for it, or stop it first"
    else:
        advice = (
            f"wait for it; if it no longer runs on {holder.host}, which cannot be seen from here, "
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
