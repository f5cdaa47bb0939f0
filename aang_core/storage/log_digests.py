"""Checksums of logs, which grow while a run trains, so that a change in them is noticed."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aang_core.errors import DataError


def log_digests(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The size and the SHA-256 of each log; one that does not exist yet counts as empty.

    Args:
        folder: the run folder.
        names: the logs, relative to it.
    """
    found = {}
    for name in names:
        content = _content(folder / name)
        found[name] = {"bytes": len(content), "sha256": _digest(content)}
    return found


def problem_of_logs(folder: Path, names: Iterable[str], recorded: Any) -> str | None:
    """What is wrong with logs that have grown since they were recorded; None if nothing is.

    Args:
        folder: the run folder.
        names: the logs that there should be.
        recorded: what `log_digests` returned.
    """
    if not isinstance(recorded, Mapping) or recorded.keys() != set(names):
        return "it does not say which logs belong to it"
    for name, of_log in recorded.items():
        size = size_of(of_log)
        if size is None:
            return f"it does not say how long {name} was"
        try:
            content = _content(folder / name)
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
        if len(content) < size:
            return f"{name} has {len(content)} bytes left of {size}"
        if _digest(content[:size]) != of_log.get("sha256"):
            return f"{name} has changed since"
    return None


def size_of(recorded: Any) -> int | None:
    """The recorded size of a log in bytes; None if nothing sensible is recorded."""
    size = recorded.get("bytes") if isinstance(recorded, Mapping) else None
    return size if type(size) is int and size >= 0 else None


def check_finished_logs(folder: Path, recorded: Mapping[str, str]) -> None:
    """Check the logs of a finished run.

    Args:
        folder: the run folder.
        recorded: the SHA-256 of each log; empty for runs of earlier versions.

    Raises:
        DataError: a log is missing or has changed.
    """
    for name, digest in recorded.items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise DataError(f"{folder / name}: cannot be read: {error.strerror}") from error
        if _digest(content) != digest:
            raise DataError(
                f"{folder / name}: is damaged: it has changed since the run finished. Restore it, "
                "or train the run again"
            )


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
