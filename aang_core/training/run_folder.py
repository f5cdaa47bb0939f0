"""The folder that holds all of a run."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang_core.errors import ConfigError


class RunFolder:
    """Writes a run's files so that each is either whole or absent.

    ``metrics.jsonl`` and ``weights.jsonl`` grow by whole lines; every other file is written under
    a temporary name and renamed.

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
            ConfigError: ``path`` is a file or a folder with files in it.
        """
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            raise ConfigError(
                f"--out {path}: already holds files; a run gets a folder of its own, so give "
                "another one or remove it"
            )

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Add one line of JSON to ``name``."""
        if not self.writes:
            return
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def cut(self, name: str, step: int) -> None:
        """Keep of a file of lines those up to ``step``; a last line that is torn goes too."""
        path = self.path / name
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n") or json.loads(line)["step"] > step:
                break
            kept.append(line)
        self.write_text(name, "".join(kept))

    def write_json(self, name: str, value: Any) -> None:
        """Write ``name`` whole, as indented JSON."""
        self.write_text(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write ``name`` whole, in UTF-8."""
        if not self.writes:
            return
        path = self.path / name
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)

    def share_mode(self, *folders: str) -> None:
        """Give the files in ``folders`` the permissions that files of this run have.

        safetensors writes files that their owner alone may read, whatever the umask says.
        """
        for folder in folders:
            for file in (self.path / folder).iterdir():
                shutil.copymode(self.path / "config.yaml", file)
