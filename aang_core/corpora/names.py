"""What a task is called after the file it is read from."""

from pathlib import Path


def task_name(train: Path) -> str:
    """``acl-arc`` for ``acl-arc/train.jsonl``, ``reviews`` for ``reviews.csv``."""
    stem = train.name.split(".")[0]
    folder = train.absolute().parent.name
    return folder if stem.lower() in {"train", "training"} and folder else stem
