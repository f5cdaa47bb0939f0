"""The copy of data in memory that a run folder keeps, so that the run can be resumed."""

from pathlib import Path
from typing import Any

from aang.config import TrainConfig
from aang.corpora.names import PARTS

FOLDER = "data"
"""The folder in a run folder that holds the copies, a file for each option."""

TEXTS = ("unlabelled", "domain")
"""Options that name texts without labels, in any number of files."""


def copy_of(name: str) -> str:
    """The file that holds the copy of what an option names, relative to the run folder."""
    return f"{FOLDER}/{name}.jsonl"


def with_own_copies(config: TrainConfig, out: Path) -> TrainConfig:
    """Point the options at the copies in ``out`` where the run folder has been moved or renamed.

    Args:
        config: the options that the run recorded.
        out: the run folder.
    """

    def here(name: str, place: str | Path) -> Path | None:
        recorded, own = Path(place), out.absolute() / copy_of(name)
        is_copy = recorded.is_absolute() and recorded.match(copy_of(name))
        return own if is_copy and own.is_file() and not recorded.exists() else None

    found: dict[str, Any] = {}
    for name in PARTS:
        path = getattr(config, name)
        if path is not None and (own := here(name, path)):
            found[name] = own
    for name in TEXTS:
        places = getattr(config, name)
        if any(here(name, place) for place in places):
            found[name] = tuple(str(here(name, place) or place) for place in places)
    return config.model_copy(update=found)
