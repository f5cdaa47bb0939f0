"""The files, folders and globs that options name: what is there, and names for it."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from aang_core.errors import DataError, ModelError
from aang_core.objectives.stages.data import ReadReport

PARTS = ("train", "dev", "test")
"""The parts of the end task."""

REST = "rest"
"""Given in place of a file, this names the training rows that a draw has left out."""

_LONGEST_NAME = 100


def task_name(train: Path) -> str:
    """``acl-arc`` for ``acl-arc/train.jsonl``, ``reviews`` for ``reviews.csv``."""
    stem, folder = train.name.split(".")[0], train.absolute().parent
    by_folder = stem.lower() in {"train", "training"} and folder.name and not _is_home(folder)
    return plain_name(folder.name if by_folder else stem)


def _is_home(folder: Path) -> bool:
    """Whether it is the user's home, whose name a published model should not reveal."""
    try:
        return folder == Path.home()
    except RuntimeError:  # a user without a home, as in some containers
        return False


def plain_name(name: str) -> str:
    """The name, printable and short enough to be a part of the name of a run folder."""
    shown = "".join(c if c.isprintable() and c not in "/\\" else "-" for c in name)
    return shown[:_LONGEST_NAME]


def require_file(path: Path) -> None:
    """Raise a DataError unless ``path`` is a file."""
    try:
        path.stat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Relative paths start at {Path.cwd()}.") from error
    except (OSError, ValueError) as error:  # name too long, folder not accessible; null in the name
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if path.is_dir():
        raise DataError(
            f"{path}: this is a folder. Name one file in it, such as {path / 'train.jsonl'}."
        )


def refuse_other_folders(source: str) -> None:
    """Refuse a file or a folder without a model; what is not a path here may be a hub name.

    Args:
        source: folder or hub name.

    Raises:
        ModelError: the message says where the model is, if it is further down.
    """
    folder = Path(source)
    if folder.is_file():
        raise ModelError(f"--model {source}: is a file; give the folder that contains config.json")
    if not folder.is_dir() or (folder / "config.json").is_file():
        return
    message = f"--model {source}: is not a model folder, it has no config.json"
    if (folder / "model" / "config.json").is_file():
        message += f". It holds a run, whose model is {folder / 'model'}"
    raise ModelError(message)


def from_home(place: Path, option: str) -> Path:
    """The path with ``~`` replaced by the home folder that it stands for.

    Raises:
        DataError: there is no such folder.
    """
    try:
        return place.expanduser()
    except RuntimeError as error:
        raise DataError(f"{option} {place}: there is no such home folder; give the path") from error


def matching_paths(place: Path, option: str) -> list[Path]:
    """The paths that ``place`` names; an existing path is taken literally, even with brackets.

    Args:
        place: a file, a folder or a glob.
        option: the option that named it, for messages.

    Raises:
        DataError: nothing is there.
    """
    if place.exists():
        return [place]
    # Path.glob takes no absolute pattern.
    matches = [Path(match) for match in sorted(glob.glob(str(place), recursive=True))]  # noqa: PTH207
    if not matches:
        what = "matches no file" if glob.has_magic(str(place)) else "no such file or folder"
        raise DataError(f"{option} {place}: {what}. Relative paths start at {Path.cwd()}.")
    return matches


def find_files(
    places: Sequence[Path], extensions: tuple[str, ...], option: str, report: ReadReport
) -> list[Path]:
    """All files that the user's files, folders and globs name, sorted, without duplicates.

    A file that is named directly is taken whatever its extension. Of the files in a folder, at any
    depth, those that end in one of ``extensions`` are taken; the others are counted in ``report``.

    Args:
        places: files, folders and globs.
        extensions: such as ``(".txt", ".gz")``.
        option: the option that named the places, for messages.
        report: where to count skipped files.

    Raises:
        DataError: a path does not exist, or a glob matches nothing.

    Examples:
        >>> from pathlib import Path
        >>> from aang import find_files
        >>> from aang_core import ReadReport
        >>> for name in ("b.txt", "a.txt", "c.pdf"):
        ...     Path(name).touch()
        >>> report = ReadReport()
        >>> [str(path) for path in find_files([Path()], (".txt",), "--domain", report)]
        ['a.txt', 'b.txt']
        >>> report.lines()
        ['1 × file of another type in a folder, skipped (first: c.pdf)']
    """
    found: dict[Path, Path] = {}
    for place in places:
        for path in matching_paths(from_home(place, option), option):
            for file in _files_in(path, extensions, report) if path.is_dir() else [path]:
                found.setdefault(file.resolve(), file)
    return sorted(found.values())


def names_of_files(places: Sequence[Path], files: Iterable[Path]) -> dict[Path, str]:
    """A name for each file, relative to the place that named it, the same on every machine.

    Args:
        places: files, folders and globs.
        files: what :func:`find_files` has found there.

    Returns:
        The number of the place, and the path from there: from a folder, from the folder of a file,
        or from the first folder of a glob without wildcards.

    Examples:
        >>> from pathlib import Path
        >>> from aang import find_files
        >>> from aang_core import ReadReport
        >>> from aang.corpora import names_of_files
        >>> Path("shards/new").mkdir(parents=True)
        >>> for name in ("shards/new/a.txt", "b.txt"):
        ...     Path(name).touch()
        >>> places = [Path("shards"), Path("b.txt")]
        >>> names_of_files(places, find_files(places, (".txt",), "--domain", ReadReport()))
        {PosixPath('b.txt'): '1/b.txt', PosixPath('shards/new/a.txt'): '0/new/a.txt'}
    """
    roots = [_root(place.expanduser()) for place in places]
    names = {}
    for file in files:
        number = next(i for i, root in enumerate(roots) if root in (file, *file.parents))
        path = file.relative_to(roots[number])
        names[file] = f"{number}/{path.as_posix() if path.parts else file.name}"
    return names


def _root(place: Path) -> Path:
    """The place itself, or the folder that a glob starts from."""
    if place.exists():
        return place
    return Path(*takewhile(lambda part: not glob.has_magic(part), place.parts))


def _files_in(folder: Path, extensions: tuple[str, ...], report: ReadReport) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(extensions) and not name.startswith("."):
                yield Path(parent, name)
            else:
                report.add("file of another type in a folder, skipped", str(Path(parent, name)))
