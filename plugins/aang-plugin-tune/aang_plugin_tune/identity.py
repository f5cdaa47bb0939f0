"""Which search a folder belongs to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang_core import ConfigError, DataError
from aang_core.storage import write_file, writing
from aang_plugin_tune.search import Search

FILE = "search.json"


def claim_folder(root: Path, search: Search, **how: Any) -> None:
    """Write down which search a folder belongs to, or check that it belongs to this one.

    A budget is no part of a search, so that a search can go on with a larger one.

    Args:
        root: the folder, which this process has locked.
        search: the search.
        **how: how it proposes and prunes.

    Raises:
        ConfigError: the folder belongs to another search.
        DataError: what is written there is damaged.
        StorageError: it cannot be written.
    """
    asked = _document(search, how)
    path = root / FILE
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        _refuse_a_comparison(root)
        with writing(path):
            write_file(path, json.dumps(asked, indent=2) + "\n")
        return
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is damaged: {error}; remove {root}") from error
    if there != asked:
        keys = {**asked, **(there if isinstance(there, dict) else {})}
        other = [
            key for key in keys if not isinstance(there, dict) or there.get(key) != asked.get(key)
        ]
        raise ConfigError(
            f"--out {root}: belongs to a search that differs in {' and '.join(other)}: "
            f"{_difference(there, asked, other[0])}. Give another folder"
        )


def _refuse_a_comparison(root: Path) -> None:
    if any((root / "runs").iterdir()):
        raise ConfigError(f"--out {root}: has runs in it that no search made; give another folder")


def _document(search: Search, how: Mapping[str, Any]) -> dict[str, Any]:
    """What must stay the same, as JSON holds it."""
    document = {
        "options": dict(search.options),
        "methods": {name: dict(of) for name, of in search.methods.items()},
        # In their order, because methods are formed and settings are listed in it.
        "search": [f"{name} = {of}" for name, of in search.dimensions.items()],
        **how,
    }
    read: dict[str, Any] = json.loads(json.dumps(document, default=str))
    return read


def _difference(there: Any, asked: Mapping[str, Any], key: str) -> str:
    had = there.get(key) if isinstance(there, dict) else there
    return f"{json.dumps(had)} and not {json.dumps(asked.get(key))}"
