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

from aang.corpora.places import require_file
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

LONGEST_LINE = 2**26
"""Longest line that is read, in bytes: a gzip file of some kilobytes can hold one of gigabytes."""


def text_lines(path: Path, longest: int | None = None) -> Iterator[str]:
    """The lines of a file as they are read, one in memory at a time, with their line endings.

    Lines end at a line feed. The file is UTF-8 with or without a byte-order mark, or UTF-16 or
    UTF-32 with one, plain or gzipped.

    Args:
        path: the file.
        longest: the longest line in bytes; None for :data:`LONGEST_LINE`.

    Raises:
        DataError: the file does not exist or cannot be read, its compressed data is damaged, or it
            contains bytes of another encoding, null bytes or too long a line; the message names
            the line.
    """
    require_file(path)
    longest = longest or LONGEST_LINE
    number = place = 0
    with _damage_told(path), _opened(path) as (readline, encoding):
        try:
            for number, line in enumerate(_lines(readline, longest), start=1):
                if len(line) > longest:
                    raise DataError(
                        f"{path}:{number}: this line is over {longest >> 20} MB, which is no "
                        "record of a text. Write one record a line"
                    )
                text = line.decode()
                if "\0" in text:
                    byte = f" (byte {place + line.index(0)})" if encoding is None else ""
                    raise DataError(
                        f"{path}:{number}: a null byte{byte}. Either the file is UTF-16 without a "
                        f"byte-order mark, which iconv -f UTF-16LE -t UTF-8 {path.name} converts, "
                        f"or it is damaged; tr -d '\\000' < {path.name} removes null bytes"
                    )
                yield text
                place += len(line)
        except UnicodeDecodeError as error:
            where = f"{path}:{number}: not UTF-8 text (byte {place + error.start})"
            if encoding is not None:  # its decoder works on blocks
                where = f"{path}:{number + 1}: not {encoding.upper()} text (here or soon after)"
            raise DataError(
                f"{where}. Save the file as UTF-8, for example with: "
                f"iconv -f LATIN1 -t UTF-8 {path.name}"
            ) from error


def begins_with(path: Path, mark: bytes) -> bool:
    """Whether ``mark`` is the first of a file's text that is not blank.

    Raises:
        DataError: the file cannot be read, or its compressed data is damaged.
    """
    with _damage_told(path), _opened(path) as (readline, _), suppress(UnicodeDecodeError):
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
    number = 0
    try:
        with _opened(path) as (readline, _):
            for number, line in enumerate(_lines(readline, LONGEST_LINE), start=1):
                if len(line) > LONGEST_LINE:
                    report.add(f"line over {LONGEST_LINE >> 20} MB, skipped", f"{path}:{number}")
                elif line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        report.add(f"{error.encoding} file damaged or cut off, rest skipped", f"{path}:{number}")
    except _GZIP_DAMAGE:
        report.add("gzip file damaged or cut off, rest skipped", f"{path}:{number}")
    except OSError as error:
        report.add(f"file that cannot be read ({error.strerror}), skipped", str(path))


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


@contextmanager
def _opened(path: Path) -> Iterator[tuple[_ReadLine, str | None]]:
    """What reads a file's lines as UTF-8, and its encoding if it is UTF-16 or UTF-32."""
    with path.open("rb") as raw:
        # By content: a downloaded "train.jsonl.gz" has often been unpacked on the way.
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP) else raw
        start = stream.peek(4)
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), None)
        if encoding is None:
            yield stream.readline, None
        else:
            with TextIOWrapper(stream, encoding, newline="\n") as decoded:
                yield lambda size: decoded.readline(size).encode(), encoding


def _lines(readline: _ReadLine, longest: int) -> Iterator[bytes]:
    """The lines without a byte-order mark; of too long a line, its first ``longest`` + 1 bytes."""
    line = readline(longest + 1).removeprefix(codecs.BOM_UTF8)
    while line:
        yield line
        while len(line) > longest and not line.endswith(b"\n"):
            line = readline(longest + 1)
        line = readline(longest + 1)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Raise a DataError if the file cannot be read or its compressed data is damaged."""
    try:
        yield
    except _GZIP_DAMAGE as error:
        raise DataError(
            f"{path}: the gzip data is damaged or cut off ({error}). Copy or download it again."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from error
