"""The folder that holds all of a run."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from aang_core.errors import ConfigError
from aang_core.storage.durable import sync, write_file, write_folder, writing
from aang_core.storage.lock import LOCK, refuse_if_locked

_FIRST = "config.yaml"
"""The file that a run writes before all others, and is resumed by."""
_NOTHING = (LOCK, f".{_FIRST}.tmp")


class RunFolder:
    """Writes a run's files so that each is either whole or absent, whatever happens meanwhile.

    ``metrics.jsonl`` and ``weights.jsonl`` grow by whole lines; every other file is written under
    a temporary name, brought to the disk and renamed.

    Every method that writes raises :class:`StorageError` where the disk does not take it.

    writes: False for a process that leaves the writing to another one.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path = path
        self.writes = writes

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Make the folder.

        Raises:
            ConfigError: it exists and is not empty, or cannot be made.
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
        """Refuse a path that holds something already, before any work is done.

        Raises:
            ConfigError: ``path`` is a file or a folder with files in it, or cannot be looked into.
            LockedError: another process is writing there.
        """
        refuse_if_locked(path)
        try:
            # What a process leaves that dies before it has written its first file is nothing.
            taken = path.is_file() or (
                path.is_dir() and any(p.name not in _NOTHING for p in path.iterdir())
            )
        except OSError as error:
            raise ConfigError(f"--out {path}: cannot be looked into: {error}") from error
        if taken:
            raise ConfigError(
                f"--out {path}: already holds files; a run gets a folder of its own, so give "
                "another one or remove it"
            )

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Add one line of JSON to ``name``."""
        if not self.writes:
            return
        path = self.path / name
        with self.writing(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")

    def sync(self, *names: str) -> None:
        """Wait until what has been appended to files, if they are there, is on the disk."""
        for name in names:
            if (self.path / name).exists():
                with self.writing(name):
                    sync(self.path / name)

    def cut(self, name: str, step: int) -> None:
        """Keep of a file of lines those up to ``step``; a line that is torn goes, with the rest."""
        path = self.path / name
        if not path.exists():
            return
        kept = []
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n") or _step(line) > step:
                break
            kept.append(line.decode())
        self.write_text(name, "".join(kept))

    def write_json(self, name: str, value: Any) -> None:
        """Write ``name`` whole, as indented JSON."""
        self.write_text(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write ``name`` whole, in UTF-8."""
        if not self.writes:
            return
        with self.writing(name):
            write_file(self.path / name, text)

    def write_folder(self, name: str, write: Callable[[Path], None]) -> None:
        """Write the folder ``name`` whole; ``write`` is given where to put its files."""
        if not self.writes:
            return

        def shared(folder: Path) -> None:
            write(folder)
            self.share_mode(folder)

        with self.writing(name):
            write_folder(self.path / name, shared)

    def share_mode(self, folder: Path) -> None:
        """Give the files in ``folder`` the permissions that files of this run have.

        safetensors writes files that their owner alone may read, whatever the umask says.
        """
        for file in folder.iterdir():
            shutil.copymode(self.path / "config.yaml", file)

    def writing(self, name: str) -> AbstractContextManager[None]:
        """Tell the user what to do where ``name`` cannot be written."""
        return writing(self.path / name)


def _step(line: bytes) -> float:
    """The step of a line; beyond all steps for one that a crash has garbled."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
