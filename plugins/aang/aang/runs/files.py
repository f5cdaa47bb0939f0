"""Reads and writes the files of a run folder. They are validated: a folder may be untrusted."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from aang.runs.resume import resume_command
from aang.runs.schema import Count, DevScores, FilePart, Part, Result
from aang_core.errors import DataError
from aang_core.storage.durable import difference, summary
from aang_core.storage.run_folder import RunFolder

FileT = TypeVar("FileT", bound=FilePart)

_CARD = "README.md"  # for its owner to edit


def read_part(kind: type[FileT], folder: Path) -> FileT:
    """Read the file that ``kind`` describes.

    Args:
        kind: the schema of the file, which also has its name.
        folder: the folder with the file.

    Raises:
        DataError: it is damaged, or not what a run writes there.
        FileNotFoundError: there is no such file.
    """
    path = folder / kind.file
    return _parsed(kind, _text(path), str(path))


def part_if_there(kind: type[FileT], folder: Path) -> FileT | None:
    """Like :func:`read_part`, but None if there is no such file."""
    try:
        return read_part(kind, folder)
    except FileNotFoundError:
        return None


def read_lines(kind: type[FileT], folder: Path) -> list[FileT]:
    """Read all lines of the log that ``kind`` describes; raises like :func:`read_part`."""
    path = folder / kind.file
    lines = enumerate(_text(path).splitlines(), start=1)
    return [_parsed(kind, line, f"{path}:{number}") for number, line in lines]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is damaged: {error}") from error


def _parsed(kind: type[FileT], text: str, where: str) -> FileT:
    try:
        return kind.model_validate(json.loads(text))
    except ValidationError as error:
        raise DataError(f"{where}: is damaged: {what_is_wrong(error)}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is damaged: {error}") from error


def what_is_wrong(error: ValidationError) -> str:
    """Where a value does not fit its schema, and why."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "it"
    return f"{where!r}: {first['msg']}"


def finished_result(folder: Path) -> Result:
    """Read ``result.json``.

    Raises:
        DataError: ``folder`` is not a run folder, the run did not finish, or the file is damaged.
    """
    refuse_links(folder)
    if not (folder / "config.yaml").is_file():
        raise DataError(f"{folder}: is not a run folder, it has no config.yaml")
    try:
        return read_part(Result, folder)
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: the run did not finish; to go on: {resume_command(folder)}"
        ) from error


def write_part(folder: RunFolder, part: FilePart, place: str = ".") -> None:
    """Write ``part`` to its file, completely or not at all, in the folder ``place`` of the run."""
    folder.write_json(str(Path(place, part.file)), part.document())


def append_line(folder: RunFolder, line: FilePart) -> None:
    """Append ``line`` to its log."""
    folder.append(line.file, line.document())


class ScoresLog:
    """Writes the ``metrics.jsonl`` of a training, one line of JSON per evaluation.

    Args:
        folder: the run folder.
        place: the folder of the training in it.
        called: the name that the scores have in a line.
    """

    def __init__(self, folder: RunFolder, place: str = ".", called: str = "dev") -> None:
        self._folder = folder
        self._name = str(Path(place, DevScores.file))
        self._called = called

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        """Does nothing: with one task there are no weights to write."""

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        line = {"step": step, self._called: dict(dev), "best": best}
        self._folder.append(self._name, line | ({"losses": dict(losses)} if losses else {}))


def inside(folder: Path, name: str) -> Path:
    """``folder / name``.

    Raises:
        DataError: the path leads out of ``folder``.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(
            f"{folder}: names {name!r}, which is not in it; a run folder holds all that belongs "
            "to the run"
        )
    return path


def refuse_links(folder: Path) -> None:
    """Refuse a folder with a symbolic link that leads out of it, or with a pipe, socket or device.

    Otherwise a link called ``result.json`` could make AANG read or overwrite any file of the user,
    and reading a pipe would wait for ever. The path to the folder itself may contain links.

    Raises:
        DataError: there is such a file; the message names it.
    """
    root = folder.resolve()
    for parent, folders, files in os.walk(root):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
                raise DataError(
                    f"{folder}: {path.relative_to(root)} is a link that leads out of the folder. "
                    "A run folder holds all that belongs to the run: put there what it leads to, "
                    "or remove it"
                )
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise DataError(
                    f"{folder}: {path.relative_to(root)} is a pipe, a socket or a device, and a "
                    "run folder has only files and folders. Remove it"
                )


class FileSummary(Part):
    """Size and SHA-256 of a file."""

    bytes: Count
    sha256: str


class ModelFiles(FilePart):
    """The files of the model, by their names in its folder."""

    file: ClassVar[str] = "model.json"

    files: dict[str, FileSummary]


def record_model(folder: RunFolder, model: str) -> None:
    """Write ``model.json``.

    Args:
        folder: the run folder.
        model: the folder of the model in it.
    """
    if not folder.writes:
        return
    root = folder.path / model
    files = {
        path.relative_to(root).as_posix(): FileSummary.model_validate(summary(path))
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != _CARD
    }
    write_part(folder, ModelFiles(files=files))


def check_model(run: Path, model: Path) -> None:
    """Refuse a model that is not the one the run saved.

    Args:
        run: the run folder. Without its file of checksums, everything passes.
        model: the folder of the model in it.

    Raises:
        DataError: a file has changed or is missing; the message names it.
    """
    recorded = part_if_there(ModelFiles, run)
    if recorded is None:
        return
    for name in recorded.files:
        inside(model, name)
    try:
        problem = difference(model, {n: f.document() for n, f in recorded.files.items()})
    except OSError as error:
        problem = str(error)
    if problem is not None:
        raise DataError(
            f"{model}: is not the model that the run has saved: {problem}. Copy it again; if you "
            f"have changed it yourself, remove {run / ModelFiles.file}"
        )
