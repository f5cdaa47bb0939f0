"""What exists at a place that an option names: a file, a folder or the files of a glob."""

import glob
from pathlib import Path

from aang_core.errors import DataError


def matching_paths(place: Path, option: str) -> list[Path]:
    """The paths that ``place`` names; an existing path is taken literally, even with brackets.

    Args:
        place: a file, a folder or a glob.
        option: the option that named it, for messages.

    Raises:
        DataError: there is none.
    """
    if place.exists():
        return [place]
    # Path.glob takes no absolute pattern.
    matches = [Path(match) for match in sorted(glob.glob(str(place), recursive=True))]  # noqa: PTH207
    if not matches:
        what = "matches no file" if glob.has_magic(str(place)) else "no such file or folder"
        raise DataError(f"{option} {place}: {what}. Relative paths start at {Path.cwd()}.")
    return matches


def from_home(place: Path, option: str) -> Path:
    """The path with ``~`` replaced by the home folder that it stands for.

    Raises:
        DataError: there is no such folder.
    """
    try:
        return place.expanduser()
    except RuntimeError as error:
        raise DataError(f"{option} {place}: there is no such home folder; give the path") from error
