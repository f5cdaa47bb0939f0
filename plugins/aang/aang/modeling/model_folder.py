"""Folders that are given as models and hold none."""

from pathlib import Path

from aang_core.errors import ModelError


def refuse_other_folders(source: str) -> None:
    """Refuse a file, and a folder without a model; what is no path here may be a name on the hub.

    Args:
        source: folder or hub name.

    Raises:
        ModelError: the message says where the model is, if it is further down.
    """
    folder = Path(source)
    if folder.is_file():
        raise ModelError(f"--model {source}: is a file; give the folder that contains config.json")
    if not folder.is_dir() or (folder / "config.json").is_file():
        return
    message = f"--model {source}: is not a model folder, it has no config.json"
    if (folder / "model" / "config.json").is_file():
        message += f". It holds a run, whose model is {folder / 'model'}"
    raise ModelError(message)
