"""The files behind an option that takes files, folders and globs, and their lines."""

import glob
import gzip
import os
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from io import BufferedReader, RawIOBase, TextIOWrapper
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aang.corpora.matching import from_home, matching_paths
from aang.corpora.text_files import announced_encoding
from aang_core.objectives.stages.data import ReadReport

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP = b"\x1f\x8b"
_AT_ONCE = 2**18

LONGEST_LINE = 2**26
"""Longest line that is read, in bytes; a whole paper takes a few hundred thousand."""


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
    """What each file is called from the place that named it, the same on every machine.

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
        >>> from aang.corpora import ames_of_files
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


def read_lines(path: Path, report: ReadReport) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of each line that is not blank, plain or gzipped.

    If the first bytes of a file announce UTF-16 or UTF-32, its lines are converted to UTF-8.
    Whatever cannot be read is counted in ``report``; the lines before it are still returned.

    Examples:
        >>> from pathlib import Path
        >>> from aang import read_lines
        >>> from aang_core import ReadReport
        >>> size = Path("texts.txt").write_bytes(b"one" + bytes([10, 10]) + b"three")
        >>> [(number, line.strip()) for number, line in read_lines(Path("texts.txt"), ReadReport())]
        [(1, b'one'), (3, b'three')]
    """
    number = 0
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP
            raw.seek(0)
            stream = BufferedReader(_Unzipped(raw), _AT_ONCE) if zipped else raw
            with closing(_lines(stream)) as lines:
                for number, line in enumerate(lines, start=1):
                    if len(line) > LONGEST_LINE:
                        report.add(
                            f"line over {LONGEST_LINE >> 20} MB, skipped", f"{path}:{number}"
                        )
                    elif line.strip():
                        yield number, line
    except UnicodeDecodeError as error:
        report.add(f"{error.encoding} file damaged or cut off, rest skipped", f"{path}:{number}")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        report.add("gzip file damaged or cut off, rest skipped", f"{path}:{number}")
    except OSError as error:
        report.add(f"file that cannot be read ({error.strerror}), skipped", str(path))


class _Unzipped(RawIOBase):
    """The content of a gzip file, in parts of the size asked for; ``gzip`` itself reads 8 kB.

    What can be read of a truncated file comes before the error.
    """

    def __init__(self, file: BufferedReader) -> None:
        self._file = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        data = self._file.read1(len(view))
        view[: len(data)] = data
        return len(data)


def _lines(stream: "BufferedReader[Any]") -> Generator[bytes, None, None]:
    encoding = announced_encoding(stream.peek(4)[:4])
    if encoding is None:
        # Limited, because a gzip file of some kilobytes can hold one line of gigabytes.
        while line := stream.readline(LONGEST_LINE + 1):
            yield line
            while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE + 1)
        return
    decoded = TextIOWrapper(stream, encoding, newline="\n")
    try:
        for text in decoded:
            yield text.encode()
    finally:
        decoded.detach()  # closing the file is the caller's job


def read_text_lines(path: Path, report: ReadReport) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 text file, each with its place, ``file:line``.

    Examples:
        >>> from pathlib import Path
        >>> from aang import read_text_lines
        >>> from aang_core import ReadReport
        >>> size = Path("texts.txt").write_text("Hello, world.", encoding="utf-8")
        >>> list(read_text_lines(Path("texts.txt"), ReadReport()))
        [('Hello, world.', 'texts.txt:1')]
    """
    for number, line in read_lines(path, report):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            report.add("line that is not UTF-8, skipped", f"{path}:{number}")
            continue
        if "\0" in text:
            report.add("line with null bytes, skipped", f"{path}:{number}")
        else:
            if text.startswith('{"') and text.rstrip().endswith("}"):
                report.add(
                    "line that looks like a JSON object, read as plain text; a file of them has to "
                    "end in .jsonl",
                    f"{path}:{number}",
                )
            yield text, f"{path}:{number}"
