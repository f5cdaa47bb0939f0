"""Writes the files of a run folder, and checkpoints in numbered folders of it."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from aang_core.errors import ConfigError, DataError
from aang_core.storage.durable import difference, summary, sync, write_file, write_folder, writing
from aang_core.storage.lock import HELD, LOCK, refuse_if_locked

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


_FIRST = "config.yaml"
"""The first file that a run writes; resuming needs it."""
_NOTHING = (LOCK, HELD, f".{_FIRST}.tmp")


class RunFolder:
    """Writes a run's files so that each is either complete or absent, even after a crash.

    ``metrics.jsonl`` and ``weights.jsonl`` grow by complete lines; every other file is written
    under a temporary name, synced to disk and renamed.

    Every method that writes raises :class:`StorageError` if it fails.

    Args:
        path: the folder.
        writes: whether this process writes; False if another process does, and the methods then do
            nothing.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path = path
        self.writes = writes

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Create the folder.

        Raises:
            ConfigError: it is not empty, or cannot be created.
            LockedError: another process is writing there.
        """
        cls.check_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--out {path}: cannot make the run folder: {error}") from error
        return cls(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """Refuse a path that is not free, before any work is done.

        Raises:
            ConfigError: ``path`` is a file or a folder that is not empty, or cannot be read.
            LockedError: another process is writing there.
        """
        refuse_if_locked(path)
        try:
            # Ignore the traces of a process that died before it had written its first file.
            taken = path.is_file() or (
                path.is_dir() and any(p.name not in _NOTHING for p in path.iterdir())
            )
        except OSError as error:
            raise ConfigError(f"--out {path}: cannot be read: {error}") from error
        if taken:
            raise ConfigError(
                f"--out {path}: already holds files; every run needs its own folder, so give "
                "another one or remove it"
            )

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Append one line of JSON to ``name``."""
        if not self.writes:
            return
        path = self.path / name
        with self.writing(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")

    def sync(self, *names: str) -> None:
        """Wait until everything appended to these files is on disk; missing files are ignored."""
        for name in names:
            if (self.path / name).exists():
                with self.writing(name):
                    sync(self.path / name)

    def cut_to(self, name: str, size: int) -> None:
        """Remove everything after the first ``size`` bytes of a log."""
        path = self.path / name
        if path.exists() and path.stat().st_size > size:
            self.write_text(name, path.read_bytes()[:size].decode())

    def write_json(self, name: str, value: Any) -> None:
        """Write ``name`` as indented JSON, completely or not at all."""
        self.write_text(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write ``name`` in UTF-8, completely or not at all."""
        if not self.writes:
            return
        path = self.path / name
        with self.writing(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)

    def write_folder(self, name: str, write: Callable[[Path], None]) -> None:
        """Write the folder ``name``, completely or not at all.

        Args:
            name: the folder, relative to the run folder.
            write: writes the files into the folder that it receives.
        """
        if not self.writes:
            return

        def shared(folder: Path) -> None:
            write(folder)
            self.share_mode(folder)

        with self.writing(name):
            write_folder(self.path / name, shared)

    def share_mode(self, folder: Path) -> None:
        """Give the files in ``folder`` the same permissions as the other files of this run.

        safetensors makes files readable only by their owner, whatever the umask is.
        """
        for file in folder.iterdir():
            shutil.copymode(self.path / "config.yaml", file)

    def writing(self, name: str) -> AbstractContextManager[None]:
        """Turn an error while ``name`` is being written into an error for the user."""
        return writing(self.path / name)
