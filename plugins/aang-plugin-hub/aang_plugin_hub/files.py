"""What is pushed: the files of the model, with nothing in them about this machine."""

import json
from pathlib import Path
from typing import Any

from aang import Run
from huggingface_hub import CommitOperationAdd

from aang_core import DataError
from aang_plugin_hub.card import card_of
from aang_plugin_hub.origins import Origins

CARD = "README.md"

_MAY_HOLD_PATHS = ("path", "file", "dir", "folder")

_VOCABULARIES = {"tokenizer.json", "vocab.json", "model.safetensors.index.json"}


def additions(run: Run, origins: Origins) -> list[CommitOperationAdd]:
    """The files of a run's model and its card, each under its name in the repository.

    Args:
        run: the run.
        origins: what the card says about where the model comes from.

    Raises:
        DataError: a file of the run is damaged.
    """
    folder = run.model_folder
    found = [CommitOperationAdd(CARD, card_of(run, origins).encode())]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name == CARD or any(part.startswith(".") for part in Path(name).parts):
            continue
        found.append(CommitOperationAdd(name, _content(path, run, origins)))
    return found


def _content(path: Path, run: Run, origins: Origins) -> Path | bytes:
    """The file itself, or its content without the paths in it."""
    if path.suffix == ".md":
        return card_of(run, origins).encode()
    if path.suffix != ".json" or path.name in _VOCABULARIES:
        return path
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is damaged: {error}") from error
    cleaned = _cleaned(settings, "", run, origins)
    if cleaned == settings:
        return path
    return json.dumps(cleaned, indent=2, ensure_ascii=False).encode() + b"\n"


def _cleaned(value: Any, key: str, run: Run, origins: Origins) -> Any:
    """The settings with each path replaced by the encoder's name, or by the path's last part.

    A class may be called ``/sports``, so only some settings are replaced.
    """
    if isinstance(value, dict):
        return {name: _cleaned(inner, name, run, origins) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner, key, run, origins) for inner in value]
    if not isinstance(value, str) or not any(word in key for word in _MAY_HOLD_PATHS):
        return value
    if value == run.options.get("model"):
        return origins.base_model or Path(value).name
    return Path(value).name if Path(value).is_absolute() else value
