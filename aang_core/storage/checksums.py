"""Sizes and SHA-256 of files, and what has changed since they were taken."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
