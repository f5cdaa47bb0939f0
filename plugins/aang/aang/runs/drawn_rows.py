"""The record of the training rows that a run has drawn: ``train_rows.json``."""

from pathlib import Path

from aang.corpora.train_draw import TrainDraw
from aang.runs.run_files import read_part
from aang.runs.schema import TrainRows
from aang_core.errors import DataError

NAME = TrainRows.file


def record_of(draw: TrainDraw) -> TrainRows:
    """The record of ``draw``, to be written."""
    return TrainRows(rows=list(draw.rows), of=draw.of, digest=draw.digest)


def recorded_draw(folder: Path) -> TrainDraw | None:
    """The draw of the run in ``folder``; None if the run trained on all rows.

    Raises:
        DataError: the record is damaged.
    """
    try:
        found = read_part(TrainRows, folder)
    except FileNotFoundError:
        return None
    draw = TrainDraw(tuple(found.rows), found.of, found.digest)
    ascending = all(a < b for a, b in zip(draw.rows, draw.rows[1:], strict=False))
    if not ascending or draw.rows[-1] >= draw.of:
        raise DataError(
            f"{folder / NAME}: is damaged: the rows must be ascending, each once, and below "
            f"{draw.of}"
        )
    return draw


def check_recorded(folder: Path, size: int | None) -> None:
    """Check that the record of a finished run agrees with its ``--train-rows``.

    Args:
        folder: the run folder.
        size: the value of ``--train-rows``; None if all rows were trained on.

    Raises:
        DataError: the record is missing, damaged or of another size.
    """
    draw = recorded_draw(folder)
    if size is not None and draw is None:
        raise DataError(f"{folder}: {NAME} is missing, though the run drew {size} training rows")
    recorded = None if draw is None else len(draw.rows)
    if recorded != size:
        raise DataError(
            f"{folder / NAME}: is damaged: it names {recorded} rows, and the run was trained with "
            f"train_rows: {size}"
        )


def check_same(folder: Path, draw: TrainDraw | None) -> None:
    """Check that a run is resumed with the rows that it was trained on.

    Raises:
        DataError: ``draw`` differs from the draw recorded in ``folder``.
    """
    recorded = recorded_draw(folder)
    if recorded is not None and recorded != draw:
        raise DataError(
            f"--resume {folder}: its training rows no longer match {NAME}, so the "
            "training data has changed; restore the old data, or start a new run. "
            "--accept-changes goes on with the data there is now"
        )
