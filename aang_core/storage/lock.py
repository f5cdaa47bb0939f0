"""One writer at a time: a locked file that names the process that writes in a folder.

The lock is the kernel's, through filelock: the kernel lets one process in, and releases the lock
when that process ends, however it ends. The file also names the process, for people to read, and
because machines that share a file system need not share its locks.
"""

import errno
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from aang_core.errors import LockedError, StorageError
from aang_core.storage.durable import sync, writing
from aang_core.storage.holder import Holder

LOCK = "lock.json"
HELD = ".lock.held"
"""A folder that exists while a lock is held where the file system has no kernel locks."""

_NO_KERNEL_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
_PATIENCE_SECONDS = 0.5
"""How long to try: a process that only looks whether a folder is free holds its lock meanwhile."""

_log = logging.getLogger(__name__)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which must exist, during the block.

    The lock of a process that has ended is taken over, with a warning.

    Raises:
        LockedError: another process holds it.
        StorageError: the lock cannot be written.
    """
    path = folder / LOCK
    with _alone(folder) as by_kernel:
        before = _read(path)
        if before is not None and not _has_ended(before, by_kernel):
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
    if not (folder / LOCK).exists():
        return
    with _alone(folder) as by_kernel:
        holder = _read(folder / LOCK)
        if holder is not None and not _has_ended(holder, by_kernel):
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
    with suppress(OSError):
        (folder / HELD).rmdir()
    with suppress(LockedError), _alone(folder):
        # Another process may have replaced the lock in the meantime.
        if _read(path) == holder:
            path.unlink()
            _log_takeover(folder, holder)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Keep other processes out of ``folder`` during the block.

    Yields:
        Whether the kernel does it, so that no process of this kernel can have the lock too.

    Raises:
        LockedError: another process is in.
        StorageError: the lock's file cannot be opened, or is no file.
    """
    path = folder / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise StorageError(f"{path}: is not a file, as a lock must be. Remove it and try again")
    lock = FileLock(path, blocking=False, mode=0o644, fallback_to_soft=False)
    by_kernel = True
    with writing(path):
        try:
            _acquire(lock, folder)
        except OSError as error:
            if error.errno not in _NO_KERNEL_LOCKS:
                raise
            by_kernel = False
    if not by_kernel:
        with _folder_made(folder):
            yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _acquire(lock: BaseFileLock, folder: Path) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            lock.acquire()
        except Timeout:
            holder = _read(folder / LOCK)
            if time.monotonic() > end or not (holder is None or holder.is_gone):
                raise _refusal(folder, holder, running=True) from None
            time.sleep(0.01)
        else:
            return


@contextmanager
def _folder_made(folder: Path) -> Iterator[None]:
    """Keep other processes out where the file system has no kernel locks.

    Only one process can make a folder, on every file system. A process that is killed leaves it,
    and removing it for such a process could remove it for one that has just made it anew. So only
    people remove it, and :func:`take_from`.
    """
    mark = folder / HELD
    with writing(mark):
        try:
            mark.mkdir()
        except FileExistsError:
            holder = _read(folder / LOCK)
            who = f"process {holder.pid} on {holder.host}" if holder else "another process"
            raise LockedError(
                f"{folder}: {who} is writing there, or was killed; the file system has no locks "
                f"that would tell. Wait for it; if it no longer runs, remove {mark}"
            ) from None
    try:
        yield
    finally:
        mark.rmdir()


def _has_ended(holder: Holder, by_kernel: bool) -> bool:
    """Whether the process that a free lock names has ended.

    Args:
        holder: the process.
        by_kernel: whether this process holds the kernel's lock.
    """
    if holder.is_here:
        return holder.is_gone
    # Another container under this kernel would still hold the kernel's lock if it were running.
    return (by_kernel and holder.had_this_kernel) or holder.was_before_boot


def _log_takeover(folder: Path, holder: Holder) -> None:
    _log.warning(
        "%s: process %d has ended and left its lock, which is taken over", folder, holder.pid
    )


def _read(path: Path) -> Holder | None:
    try:
        # A pipe in place of the file would wait for a writer.
        return Holder.of(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def _refusal(folder: Path, holder: Holder | None, *, running: bool = False) -> LockedError:
    """The error for a folder that another process writes in.

    Args:
        folder: the folder.
        holder: the process, if it is known.
        running: whether the kernel says that it runs.
    """
    if holder is None or holder.is_gone:
        return LockedError(f"{folder}: another process has just begun to write there")
    if holder.is_here:
        advice = "wait for it, or stop it first"
    elif running:
        where = "another container or another machine"
        advice = f"wait for it, or stop it first; it runs in {where}, with a process id of its own"
    else:
        advice = (
            f"wait for it; if it no longer runs on {holder.host}, which cannot be seen from here, "
            f"remove {folder / LOCK}"
        )
    return LockedError(
        f"{folder}: process {holder.pid} on {holder.host} is writing there; {advice}"
    )
