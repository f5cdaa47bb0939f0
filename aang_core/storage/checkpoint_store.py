"""Stores the last two checkpoints of a training, with checksums."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from aang_core.errors import DataError
from aang_core.storage.durable import difference, summary, write_folder

MANIFEST = "manifest.json"
KEPT = 2

_log = logging.getLogger(__name__)


class CheckpointStore:
    """Checkpoints in numbered folders; the newest has the highest number.

    Each folder has ``manifest.json``, written last, with the sizes and SHA-256 of the other files.
    A checkpoint appears under its number only when it is complete and on disk. The one before it is
    kept, too.

    Args:
        folder: the folder of the checkpoints, created with the first one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._good: list[Path] = []

    def save(self, write: Callable[[Path], None]) -> None:
        """Add a checkpoint.

        Args:
            write: writes the files of the checkpoint into the folder that it receives.

        Raises:
            OSError: it cannot be written; the existing checkpoints are untouched.
        """

        def whole(folder: Path) -> None:
            write(folder)
            manifest = {"files": {file.name: summary(file) for file in sorted(folder.iterdir())}}
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")

        number = max((int(path.name) for path in self._numbered()), default=0) + 1
        saved = self.folder / f"{number:06}"
        write_folder(saved, whole)
        self._good = [*self._good, saved][-KEPT:]
        for path in self._numbered():
            if path not in self._good:
                shutil.rmtree(path, ignore_errors=True)

    def newest(self, problem: Callable[[Path], str | None] = lambda path: None) -> Path | None:
        """The newest intact checkpoint; None if there are no checkpoints.

        A damaged one is skipped with a warning that says what is wrong with it.

        Args:
            problem: says what else is wrong with a checkpoint whose files are intact; None if
                nothing is.

        Raises:
            DataError: all checkpoints are damaged.
        """
        damaged: list[str] = []
        for path in sorted(self._numbered(), reverse=True):
            found = _problem(path) or problem(path)
            if found is None:
                self._good = [path]
                for other in damaged:
                    _log.warning("%s; going on from %s, the one before", other, path)
                return path
            damaged.append(f"checkpoint {path} is damaged: {found}")
        if damaged:
            raise DataError(
                f"{self.folder}: there is no checkpoint to go on from. {'. '.join(damaged)}. "
                "Remove that folder to start again; the result is the same"
            )
        return None

    def drop_older(self) -> None:
        """Delete all checkpoints except the newest."""
        for path in self._good[:-1]:
            shutil.rmtree(path, ignore_errors=True)
        self._good = self._good[-1:]

    def drop_all(self) -> None:
        """Delete all checkpoints."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._good = []

    def _numbered(self) -> Iterator[Path]:
        if self.folder.is_dir():
            yield from (path for path in self.folder.iterdir() if path.name.isdecimal())


def _problem(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None if nothing is."""
    try:
        files = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["files"]
        return difference(checkpoint, files)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read: {error!r}"
