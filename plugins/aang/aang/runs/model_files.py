"""Checksums of a finished run's model, so that a damaged copy of it is noticed."""

from pathlib import Path
from typing import ClassVar

from aang.runs.run_files import inside, read_part, write_part
from aang.runs.schema import Count, FilePart, Part
from aang_core.errors import DataError
from aang_core.storage.checksums import difference, summary
from aang_core.storage.run_folder import RunFolder

_CARD = "README.md"  # for its owner to edit


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
    """Refuse a model that is not the one that the run has saved.

    Args:
        run: the run folder; runs of earlier versions have no checksums.
        model: the folder of the model in it.

    Raises:
        DataError: a file has changed or is missing; the message names it.
    """
    try:
        recorded = read_part(ModelFiles, run)
    except FileNotFoundError:
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
