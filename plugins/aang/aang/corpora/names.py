"""Names of tasks, from the files that they are read from, of their parts, and words for files."""

from pathlib import Path

PARTS = ("train", "dev", "test")
"""The parts of the end task."""

REST = "rest"
"""The word in place of a file that names the training rows which a draw has left out."""

_LONGEST = 100


def task_name(train: Path) -> str:
    """``acl-arc`` for ``acl-arc/train.jsonl``, ``reviews`` for ``reviews.csv``."""
    stem = train.name.split(".")[0]
    folder = train.absolute().parent.name
    return plain_name(folder if stem.lower() in {"train", "training"} and folder else stem)


def plain_name(name: str) -> str:
    """The name, printable and short enough to be a part of the name of a run folder."""
    shown = "".join(c if c.isprintable() and c not in "/\\" else "-" for c in name)
    return shown[:_LONGEST]
