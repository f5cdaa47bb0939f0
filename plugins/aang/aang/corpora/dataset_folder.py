"""Local folders of data sets: what they say about their files, before ``datasets`` follows it."""

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from aang_core.errors import DataError
from aang_core.storage.nested import leaves

_CARDS = ("README.md", ".huggingface.yaml")


def refuse_files_elsewhere(folder: Path) -> None:
    """Refuse a data set whose files are said to be outside its folder, or on another machine.

    ``datasets`` would read them, whatever they are.

    Args:
        folder: the folder; what is no folder may be a name on the hub.

    Raises:
        DataError: the message names the file that says so.
    """
    if not folder.is_dir():
        return
    splits = list(_texts(_json(folder / "dataset_dict.json").get("splits")))
    for split in splits:
        _require_inside(folder, folder / "dataset_dict.json", split)
    for saved in (folder, *(folder / split for split in splits)):
        files = _json(saved / "state.json").get("_data_files")
        for file in files if isinstance(files, list) else ():
            for name in _texts(file):
                _require_inside(folder, saved / "state.json", name)
    for card in _CARDS:
        for name in _texts(_files_of_card(folder / card)):
            _require_inside(folder, folder / card, name)


def _require_inside(folder: Path, says: Path, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "://" in name:
        raise DataError(
            f"--dataset {folder}: {says.name} names {name!r:.100}, which is not in the folder; a "
            "data set's folder holds all of its files"
        )


def _json(path: Path) -> dict[str, Any]:
    """The object in a file; empty if there is none, and ``datasets`` says what is wrong with it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _files_of_card(card: Path) -> Any:
    """What the header of a card says about data files, as nested lists and mappings."""
    from huggingface_hub.repocard import metadata_load
    from yaml import YAMLError, safe_load

    if not card.is_file():
        return None
    try:
        if card.suffix == ".md":
            said: Any = metadata_load(card)
        else:
            said = safe_load(card.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError, RecursionError):
        return None
    configs = said.get("configs") if isinstance(said, dict) else None
    return [
        [config.get("data_files"), config.get("data_dir")]
        for config in (configs if isinstance(configs, list) else ())
        if isinstance(config, dict)
    ]


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in nested lists, and in the values of mappings."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, str))
