"""One writer at a time: a locked file that says which process works in a folder.

The kernel's lock, through filelock, sees to it that of several processes one gets in. Process and
host are written into the file for people to read, and because hosts that share a file system need
not share its locks.
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
        LockedError: Another process holds it.
        StorageError: The lock cannot be written.
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
            # Nothing can be read where the disk was full.
            if _read(path) in (Holder.this(), None):
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
    path = folder / LOCK
    if _read(path) != holder:
        return
    with suppress(LockedError), _kernel_lock(path):
        # Whoever came first may have made a lock of its own since.
        if _read(path) == holder:
            path.unlink()
            _log_takeover(folder, holder)


@contextmanager
def _kernel_lock(path: Path) -> Iterator[None]:
    """Keep other processes out of ``path``, as far as the file system can.

    Some, such as Lustre mounted without ``flock``, cannot. What the file says of its holder has to
    do there.

    Raises:
        LockedError: Another process is in.
        StorageError: The file cannot be opened.
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
        "%s: process %d that is gone left its lock, which is taken over", folder, holder.pid
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
