"""What a task is called after the file it is read from."""

from pathlib import Path

_LONGEST = 100


def task_name(train: Path) -> str:
    """``acl-arc`` for ``acl-arc/train.jsonl``, ``reviews`` for ``reviews.csv``."""
    stem = train.name.split(".")[0]
    folder = train.absolute().parent.name
    return plain_name(folder if stem.lower() in {"train", "training"} and folder else stem)


def plain_name(name: str) -> str:
    """The name as part of the name of a run's folder: printable, no path, not too long for one."""
    shown = "".join(c if c.isprintable() and c not in "/\\" else "-" for c in name)
    return shown[:_LONGEST]
