"""Sizes and SHA-256 of files, and what has changed since they were taken."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def summary(file: Path) -> dict[str, object]:
    """The size and the digest of a file."""
    return {"bytes": file.stat().st_size, "sha256": digest_of(file)}


def difference(folder: Path, expected: Mapping[str, Any]) -> str | None:
    """The first difference between the files in ``folder`` and their summaries.

    Args:
        folder: the folder.
        expected: what :func:`summary` returned, by the name of the file.

    Returns:
        What is wrong; None if nothing is.

    Raises:
        OSError: a file cannot be read.
        KeyError: a summary is not complete.
    """
    for name, was in expected.items():
        try:
            found = summary(folder / name)
        except FileNotFoundError:
            return f"{name} is missing"
        if found["bytes"] != was["bytes"]:
            return f"{name} has {found['bytes']} bytes instead of {was['bytes']}"
        if found["sha256"] != was["sha256"]:
            return f"the checksum of {name} is wrong"
    return None
