"""Folders that are given as models: those that hold none, or one that must not be loaded."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang_core.errors import ModelError

MOST_LAYERS = 1000
MOST_LABELS = 100_000
"""Larger models would be built for hours, or until memory is full, before anything is read."""


def refuse_other_folders(source: str) -> None:
    """Refuse a file, and a folder without a model; what is no path here may be a name on the hub.

    Args:
        source: folder or hub name.

    Raises:
        ModelError: the message says where the model is, if it is further down; or the folder names
            files of weights that are not in it.
    """
    folder = Path(source)
    if folder.is_file():
        raise ModelError(f"--model {source}: is a file; give the folder that contains config.json")
    if not folder.is_dir():
        return
    if (folder / "config.json").is_file():
        for index in sorted(folder.glob("*.index.json")):
            _refuse_files_elsewhere(index)
        return
    message = f"--model {source}: is not a model folder, it has no config.json"
    if (folder / "model" / "config.json").is_file():
        message += f". It holds a run, whose model is {folder / 'model'}"
    raise ModelError(message)


def _refuse_files_elsewhere(index: Path) -> None:
    """Refuse an index of weights that names a file outside its folder."""
    try:
        found = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        elsewhere = next((name for name in found if Path(name).name != name), None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return  # transformers says what is wrong with it, if it reads it at all
    if elsewhere is not None:
        raise ModelError(
            f"{index}: names {elsewhere!r:.100}, which is not in its folder; a model folder holds "
            "all of its weights"
        )


def refuse_giants(source: str, config: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be built in any reasonable time.

    Args:
        source: folder or hub name.
        config: the content of its ``config.json``.

    Raises:
        ModelError: it has far too many layers or labels.
    """
    for name, value in config.items():
        if isinstance(value, Mapping) and name not in ("id2label", "label2id"):
            refuse_giants(source, value)
            continue
        labels = name in ("num_labels", "id2label", "label2id")
        layers = "layer" in name and name.startswith(("n", "encoder", "decoder"))
        most = MOST_LABELS if labels else MOST_LAYERS if layers else None
        size = len(value) if isinstance(value, Mapping) else value
        if most is not None and isinstance(size, int) and size > most:
            raise ModelError(
                f"--model {source}: its config.json says {size:.3g} "
                f"{'labels' if labels else f'for {name}'}, and AANG loads models of at most "
                f"{most:,}; is it the right file?"
            )
