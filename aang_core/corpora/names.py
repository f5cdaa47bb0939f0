"""The name of a task, taken from the file that it is read from."""

from pathlib import Path

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
