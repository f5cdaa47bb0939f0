"""Writing that a crash cannot undo, and what to say when the disk will not take it."""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from aang_core.errors import StorageError

_REMEDIES = {
    errno.ENOSPC: "Free some space and try again",
    errno.EDQUOT: "Free some space and try again",
    errno.EFBIG: "Allow larger files (ulimit -f)",
    errno.EROFS: "Make it writable, or write elsewhere",
    errno.EACCES: "Make it writable, or write elsewhere",
    errno.EPERM: "Make it writable, or write elsewhere",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what goes wrong while ``path`` is being written into an error for the user.

    Raises:
        StorageError: writing failed.
    """
    try:
        yield
    except OSError as error:
        reason, number = error.strerror or str(error), error.errno
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else None
        reason = os.strerror(number) if number else str(error)
    else:
        return
    remedy = _REMEDIES.get(number or 0, "Remove the cause and try again")
    raise StorageError(f"cannot write {path}: {reason}. {remedy}")


@contextmanager
def whole_file(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """A path to write to, whose file takes the place of ``path`` when the block succeeds.

    Whoever looks, now or after a crash, sees the old file or the new one, and never half of it.
    When the block fails, nothing is left behind.

    Args:
        path: The file, in a folder that exists.
        shared: Whether several processes may write it at once; the last one wins then.
    """
    mark = f"{secrets.token_hex(4)}.tmp" if shared else "tmp"
    draft = path.with_name(f".{path.name}.{mark}")
    try:
        yield draft
        sync(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_file(path: Path, text: str) -> None:
    """Write ``path`` whole, in UTF-8."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder whole: ``write`` fills one under another name, which then becomes ``path``.

    What was there before is gone as soon as the new one is complete, and not sooner.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        for file in temporary.rglob("*"):
            sync(file)
        sync(temporary)
        shutil.rmtree(path, ignore_errors=True)
        temporary.rename(path)
    except BaseException:
        # What does not fit on a full disk should not fill it either.
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems know no fsync of folders; they have nothing to wait for.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
