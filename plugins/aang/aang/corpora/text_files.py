"""The lines of the user's files, whatever their compression and encoding.

:func:`text_lines` raises on the first fault, for data that must be whole. :func:`read_lines` and
:func:`read_text_lines` count faults in a report and go on, for large corpora.
"""

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from aang_core.errors import DataError
from aang_core.objectives.stages.data import ReadReport

# UTF-32's mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GZIP = b"\x1f\x8b"
_ReadLine = Callable[[int], bytes]
"""Reads a line, or the given number of bytes of a longer one."""

_GZIP_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)

_ADVICE = {
    "line": "Write one record a line",
    "gzip": "Copy or download it again",
    "file": "See that it is there and may be read",
}
"""What to do about a fault, by its first word; all others are about encodings."""

LONGEST_LINE = 2**26
"""Longest line that is read, in bytes: a gzip file of some kilobytes can hold one of gigabytes."""


class _Raising(ReadReport):
    """Raises the first fault, for data that must be whole."""

    def add(self, event: str, where: str) -> None:
        fault = event.removesuffix(", skipped").removesuffix(", rest skipped")
        raise DataError(f"{where}: {fault}. {_ADVICE.get(fault.split()[0], 'Save it as UTF-8')}")


def text_lines(path: Path, longest: int | None = None) -> Iterator[str]:
    """The lines of a file as they are read, one in memory at a time, with their line endings.

    Lines end at a line feed. The file is UTF-8 with or without a byte-order mark, or UTF-16 or
    UTF-32 with one, plain or gzipped.

    Args:
        path: the file.
        longest: the longest line in bytes; None for :data:`LONGEST_LINE`.

    Raises:
        DataError: the file cannot be read, its compressed data is damaged, or it
            contains bytes of another encoding, null bytes or too long a line; the message names
            the line.
    """
    place = 0
    for number, line in _numbered(path, _Raising(), longest or LONGEST_LINE):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: not UTF-8 text (byte {place + error.start}). Save the file as "
                f"UTF-8, for example with: iconv -f LATIN1 -t UTF-8 {path.name}"
            ) from error
        if "\0" in text:
            raise DataError(
                f"{path}:{number}: a null byte (byte {place + line.index(0)}). Either the file is "
                "UTF-16 without a byte-order mark, which "
                f"iconv -f UTF-16LE -t UTF-8 {path.name} converts, or it is damaged; "
                f"tr -d '\\000' < {path.name} removes null bytes"
            )
        yield text
        place += len(line)


def begins_with(path: Path, mark: bytes) -> bool:
    """Whether a file's text begins with ``mark``, after any blanks."""
    # Faults are reported when the file is read.
    with suppress(UnicodeDecodeError, OSError, *_GZIP_DAMAGE), _opened(path) as readline:
        return next(filter(None, map(bytes.lstrip, _lines(readline, 2**10))), b"").startswith(mark)
    return False


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
    for number, line in _numbered(path, report, LONGEST_LINE):
        if line.strip():
            yield number, line


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
        where = f"{path}:{number}"
        try:
            text = line.decode()
        except UnicodeDecodeError:
            report.add("line that is not UTF-8, skipped", where)
            continue
        if "\0" in text:
            report.add("line with null bytes, skipped", where)
            continue
        if text.startswith('{"') and text.rstrip().endswith("}"):
            report.add(
                "line that looks like a JSON object, read as plain text; a file of them has to "
                "end in .jsonl",
                where,
            )
        yield text, where


def well_formed(text: str) -> str:
    """The text with each lone surrogate, which JSON can contain, replaced by U+FFFD.

    No tokenizer accepts lone surrogates, and no UTF-8 file can contain them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed_value(value: Any) -> Any:
    """The value with every text in it :func:`well_formed`, in lists and objects too."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list | tuple):
        return [well_formed_value(part) for part in value]
    if isinstance(value, dict):
        return {well_formed_value(key): well_formed_value(part) for key, part in value.items()}
    # Arrays, such as those of pandas and datasets.
    return well_formed_value(value.tolist()) if hasattr(value, "tolist") else value


def _numbered(path: Path, report: ReadReport, longest: int) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line.

    A line that is too long is skipped, and damage ends the file; ``report`` gets both.
    """
    number = 0
    try:
        with _opened(path) as readline:
            for number, line in enumerate(_lines(readline, longest), start=1):
                if len(line) > longest:
                    report.add(f"line over {longest >> 20} MB, skipped", f"{path}:{number}")
                else:
                    yield number, line
    except UnicodeDecodeError as error:
        event = f"{error.encoding.upper()} file damaged or cut off, rest skipped"
        report.add(event, f"{path}:{number + 1}")
    except _GZIP_DAMAGE:
        report.add("gzip file damaged or cut off, rest skipped", f"{path}:{number}")
    except OSError as error:
        report.add(f"file that cannot be read ({error.strerror}), skipped", str(path))


@contextmanager
def _opened(path: Path) -> Iterator[_ReadLine]:
    """A function that reads a file's lines, converting UTF-16 and UTF-32 to UTF-8."""
    with path.open("rb") as raw:
        # By content: a downloaded "train.jsonl.gz" has often been unpacked on the way.
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP) else raw
        start = stream.peek(4)
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), None)
        if encoding is None:
            yield stream.readline
        else:
            with TextIOWrapper(stream, encoding, newline="\n") as decoded:
                yield lambda size: decoded.readline(size).encode()


def _lines(readline: _ReadLine, longest: int) -> Iterator[bytes]:
    """The lines without a byte-order mark; of too long a line, its first ``longest`` + 1 bytes."""
    line = readline(longest + 1).removeprefix(codecs.BOM_UTF8)
    while line:
        yield line
        while len(line) > longest and not line.endswith(b"\n"):
            line = readline(longest + 1)
        line = readline(longest + 1)
