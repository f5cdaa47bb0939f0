"""The result and the options of a finished run, read from its folder."""

from pathlib import Path

from aang.config import TrainConfig, recorded_config
from aang.runs.run_files import read_part, refuse_links
from aang.runs.schema import Result
from aang_core.errors import DataError


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
        raise DataError(f"{folder}: the run did not finish, result.json is missing") from error


def recorded_options(folder: Path) -> TrainConfig:
    """Read the options, validated.

    Raises:
        AangError: this version does not have these options, or the record of drawn rows is damaged.
    """
    # Imports torch, which reading JSON does not need.
    from aang.runs.drawn_rows import check_recorded

    config = recorded_config(folder / "config.yaml")
    check_recorded(folder, config.train_rows)
    return config
