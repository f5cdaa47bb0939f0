"""Files that survive a crash: durable writes with errors for users, checksums, lines of CSV."""

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    """Turn an error while ``path`` is being written into an error for the user.

    Raises:
        StorageError: writing failed.
    """
    try:
        yield
    except OSError as error:
        number = error.errno
        # Libraries put sentences of their own around the reason.
        reason = os.strerror(number) if number else str(error)
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
    """Yield a path to write to; its file replaces ``path`` when the block succeeds.

    Readers see the old file or the new one, never a part of one, even after a crash. If the block
    fails, nothing is left behind.

    Args:
        path: the file, in an existing folder.
        shared: whether several processes may write it at once; then the last one wins.
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
    """Write ``path`` in UTF-8, completely or not at all."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder completely or not at all.

    Args:
        path: the folder; what it contained before is removed when the new content is complete.
        write: writes the files into the folder that it receives, which is then renamed.
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
        # Do not leave a partial folder on a full disk.
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems do not support fsync for folders; there is nothing to wait for.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def digest_of(file: Path, size: int | None = None) -> str:
    """The SHA-256 of a file, or of its first ``size`` bytes."""
    with file.open("rb") as opened:
        if size is not None:
            return hashlib.sha256(opened.read(size)).hexdigest()
        return hashlib.file_digest(opened, "sha256").hexdigest()


def summary(file: Path) -> dict[str, Any]:
    """The size and the digest of a file; one that does not exist counts as empty."""
    if not file.exists():
        return {"bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    return {"bytes": file.stat().st_size, "sha256": digest_of(file)}


def difference(folder: Path, expected: Mapping[str, Any], *, grows: bool = False) -> str | None:
    """The first difference between the files in ``folder`` and their summaries.

    Args:
        folder: the folder.
        expected: what :func:`summary` returned, by the name of the file.
        grows: whether a file may have become longer since, as logs do.

    Returns:
        What is wrong; None if nothing is.

    Raises:
        OSError: a file cannot be read.
        KeyError: a summary is not complete.
    """
    for name, was in expected.items():
        file, size = folder / name, was["bytes"]
        found = file.stat().st_size if file.exists() else 0
        if size and not file.exists():
            return f"{name} is missing"
        if found < size or (found > size and not grows):
            return f"{name} has {found} bytes instead of {size}"
        if size and digest_of(file, size if grows else None) != was["sha256"]:
            return f"the checksum of {name} is wrong"
    return None


_QUOTED = re.compile(r'[",\r\n]|^[\s\ufeff]|\s\Z')
"""What needs quotes: separators, line ends of any system, blanks that some readers strip."""


def csv_line(cells: Iterable[Any]) -> str:
    """One record of CSV with its line feed; None is an empty cell.

    Every reader finds as many records as were written, whatever the cells hold. ``csv.writer`` does
    not promise that: before Python 3.13 it quotes a carriage return only if its own lines end in
    one. A null character, which many readers refuse, is replaced by U+FFFD.

    Examples:
        >>> from aang_core.storage import csv_line
        >>> csv_line(["a\\rb", 'a "no" too', " c", 0.5, None])
        '"a\\rb","a ""no"" too"," c",0.5,\\n'
    """
    # A record of one empty cell would be a blank line, which readers skip.
    return (",".join(map(_field, cells)) or '""') + "\n"


def _field(cell: Any) -> str:
    text = "" if cell is None else str(cell).replace("\0", "\ufffd")
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
