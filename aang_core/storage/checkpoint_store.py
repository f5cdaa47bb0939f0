"""Where checkpoints lie: the last two of them, each with checksums."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from aang_core.errors import DataError
from aang_core.storage.durable import write_folder

MANIFEST = "manifest.json"
KEPT = 2

_log = logging.getLogger(__name__)


class CheckpointStore:
    """Numbered folders, the newest with the highest number.

    Each holds files and, written last, ``manifest.json`` with their sizes and SHA-256. A checkpoint
    appears under its number only when it is whole and on the disk, and the one before stays until
    the next one is.

    folder: made with the first checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._good: list[Path] = []

    def save(self, write: Callable[[Path], None]) -> None:
        """Add what ``write`` puts into the folder that it is given.

        Raises:
            OSError: it cannot be written; the checkpoints that there were are untouched.
        """

        def whole(folder: Path) -> None:
            write(folder)
            manifest = {"files": {file.name: _summary(file) for file in sorted(folder.iterdir())}}
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")

        number = max((int(path.name) for path in self._numbered()), default=0) + 1
        saved = self.folder / f"{number:06}"
        write_folder(saved, whole)
        self._good = [*self._good, saved][-KEPT:]
        for path in self._numbered():
            if path not in self._good:
                shutil.rmtree(path, ignore_errors=True)

    def newest(self) -> Path | None:
        """The newest checkpoint that is whole; None if there is none at all.

        A damaged one is passed over, and a warning says what is wrong with it.

        Raises:
            DataError: there are checkpoints, and all are damaged.
        """
        damaged: list[str] = []
        for path in sorted(self._numbered(), reverse=True):
            problem = _problem(path)
            if problem is None:
                self._good = [path]
                for other in damaged:
                    _log.warning("%s; going on from %s, the one before", other, path)
                return path
            damaged.append(f"checkpoint {path} is damaged: {problem}")
        if damaged:
            raise DataError(
                f"{self.folder}: there is no checkpoint to go on from. {'. '.join(damaged)}. "
                "Remove that folder to begin anew, which comes to the same end"
            )
        return None

    def drop_older(self) -> None:
        """Keep the newest one alone."""
        for path in self._good[:-1]:
            shutil.rmtree(path, ignore_errors=True)
        self._good = self._good[-1:]

    def drop_all(self) -> None:
        """Keep none."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._good = []

    def _numbered(self) -> Iterator[Path]:
        if self.folder.is_dir():
            yield from (path for path in self.folder.iterdir() if path.name.isdecimal())


def _summary(file: Path) -> dict[str, object]:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}


def _problem(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None if nothing is."""
    try:
        files = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["files"]
        for name, expected in files.items():
            found = _summary(checkpoint / name)
            if found["bytes"] != expected["bytes"]:
                return f"{name} has {found['bytes']} bytes instead of {expected['bytes']}"
            if found != expected:
                return f"the checksum of {name} is wrong"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except OSError as error:
        return f"it cannot be read: {error}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read: {error!r}"
    return None
