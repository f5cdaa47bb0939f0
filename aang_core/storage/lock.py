"""One writer at a time: a locked file that names the process that writes in a folder.

The lock is the kernel's, through filelock: the kernel lets one process in, and releases the lock
when that process ends, however it ends. The file also names the process, for people to read, and
because machines that share a file system need not share its locks.
"""

import errno
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from aang_core.errors import LockedError
from aang_core.storage.durable import sync, writing

LOCK = "lock.json"
HELD = ".lock.held"
"""The file that filelock keeps instead where the file system has no kernel locks."""

_NO_KERNEL_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
_PATIENCE_SECONDS = 0.5
"""How long to try: a process that only looks whether a folder is free holds its lock meanwhile."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock.

    Attributes:
        pid: its number.
        host: the name of its host.
        started: the boot of its machine and when it started since, to distinguish it from a later
            process with the same number; empty where the system does not tell.
    """

    pid: int
    host: str
    started: str = ""

    @classmethod
    def this(cls) -> "Holder":
        """The current process."""
        return cls(os.getpid(), socket.gethostname(), process_start(os.getpid()) or "")

    @classmethod
    def of(cls, value: Any) -> "Holder":
        """The process that ``value``, read from JSON, describes.

        Raises:
            ValueError, TypeError, KeyError: it does not describe one.
        """
        return cls(int(value["pid"]), str(value["host"]), str(value.get("started", "")))

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine; a container may have a host name of its own."""
        boot = _boot()
        return self.host == socket.gethostname() or (boot != "" and self.started.startswith(boot))

    @property
    def is_gone(self) -> bool:
        """Whether it ran on this machine and has ended."""
        return self.is_here and process_start(self.pid) != self.started


def process_start(pid: int) -> str | None:
    """When a process of this machine started; None if there is none, empty if unknown."""
    if not (boot := _boot()):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return ""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is a name in parentheses, which may itself hold spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot} {fields[18]}"


def _boot() -> str:
    """Identifies the running kernel until the next boot; empty without ``/proc``."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which must exist, during the block.

    The lock of a process of this machine that has ended is taken over, with a warning.

    Raises:
        LockedError: another process holds it.
        StorageError: the lock cannot be written.
    """
    path = folder / LOCK
    with _alone(folder) as left:
        if left is not None:
            _log.warning(
                "%s: process %d has ended without removing its lock; the lock is removed",
                folder,
                left.pid,
            )
        try:
            with writing(path):
                path.write_text(json.dumps(asdict(Holder.this())), encoding="utf-8")
                sync(path)
                sync(folder)
            yield
        finally:
            path.unlink(missing_ok=True)


def refuse_if_locked(folder: Path) -> None:
    """Refuse a folder that another process is writing in, before any work is done.

    Raises:
        LockedError: a running process holds the lock.
    """
    if (folder / LOCK).exists():
        with _alone(folder):
            pass


def holder_of(folder: Path) -> Holder | None:
    """The process that holds the lock of ``folder``; None if there is none."""
    path = folder / LOCK
    try:
        # A pipe in place of the file would wait for a writer.
        return Holder.of(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def take_from(folder: Path, holder: Holder) -> None:
    """Remove the lock of ``folder`` if ``holder`` has it, a process that is known to have ended.

    This is for a process on another machine, whose state cannot be seen from here.
    """
    if holder_of(folder) == holder:
        (folder / HELD).unlink(missing_ok=True)
        (folder / LOCK).unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[Holder | None]:
    """Keep other processes out of ``folder`` during the block.

    Yields:
        The process of this machine that has left its lock, if one has.

    Raises:
        LockedError: another process is in, or one of another machine may be.
        StorageError: the lock's file cannot be opened.
    """
    path = folder / LOCK
    lock = _acquired(folder)
    try:
        left = holder_of(folder)
        if left is not None and not left.is_here:
            raise LockedError(
                f"{folder}: process {left.pid} on {left.host} is writing there; wait for it; if it "
                f"no longer runs on {left.host}, which cannot be seen from here, remove {path}"
            )
        yield left
    finally:
        lock.release()


def _acquired(folder: Path) -> BaseFileLock:
    path = folder / LOCK
    lock: BaseFileLock = FileLock(path, mode=0o644, fallback_to_soft=False)
    with writing(path):
        try:
            try:
                lock.acquire(_PATIENCE_SECONDS, poll_interval=0.01)
            except OSError as error:
                if error.errno not in _NO_KERNEL_LOCKS:
                    raise
                lock = SoftFileLock(folder / HELD)
                lock.acquire(_PATIENCE_SECONDS, poll_interval=0.01)
        except Timeout:
            holder = holder_of(folder)
            who = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
            raise LockedError(
                f"{folder}: {who} is writing there; wait for it, or stop it first"
            ) from None
    return lock
