"""Writes the files of a run folder."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from aang_core.errors import ConfigError
from aang_core.storage.durable import sync, write_file, write_folder, writing
from aang_core.storage.lock import HELD, LOCK, refuse_if_locked

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
