"""The user's text files as strings: compression and encoding, whatever the content."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any

from aang.corpora.memory_limit import VARIABLE, gigabytes, memory_limit
from aang_core.errors import DataError

# UTF-32's mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_GZIP = b"\x1f\x8b"

LONGEST_LINE = 2**26
"""Longest line of a file that is read line by line: a few kilobytes can unpack to gigabytes."""

_AT_ONCE = 2**18
_SPACE = 8
"""Bytes of memory for each byte of a file that is read whole: its text, of up to four bytes a
character, and the bytes themselves."""


def read_text(path: Path) -> str:
    """The whole text of a file, with its line endings unchanged.

    The file is UTF-8 with or without a byte-order mark, or UTF-16 or UTF-32 with one, plain or
    gzipped.

    Raises:
        DataError: the file does not exist or cannot be read, its compressed data is damaged, it
            contains bytes of another encoding or null bytes (the message names the line), or it
            takes more memory than it may.
    """
    text = _decode(_read_bytes(path), path)
    if "\0" in text:
        start = text.index("\0")
        raise _null_byte(path, text.count("\n", 0, start) + 1, len(text[:start].encode()))
    return text


def begins_with(path: Path, mark: str) -> bool:
    """Whether ``mark`` is the first of a file's text that is not blank, within its first block.

    Raises:
        DataError: the file cannot be read, or its compressed data is damaged.
    """
    with _unpacked(path) as stream:
        start = stream.peek(_AT_ONCE)[:_AT_ONCE]
    encoding = announced_encoding(start) or "utf-8-sig"
    return start.decode(encoding, "replace").lstrip().startswith(mark)


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file as they are read, one in memory at a time, with their line endings.

    Lines end at a line feed. Encodings and compression are those of :func:`read_text`.

    Raises:
        DataError: as :func:`read_text`, when the place is reached; or a line is longer than
            :data:`LONGEST_LINE`.
    """
    with _unpacked(path) as stream:
        encoding = announced_encoding(stream.peek(len(codecs.BOM_UTF32_LE)))
        lines = _utf8_lines(path, stream) if encoding is None else _wide(path, stream, encoding)
        yield from lines


@contextmanager
def _unpacked(path: Path) -> "Iterator[BufferedReader[Any]]":
    """The bytes of a file, unpacked if they are compressed."""
    require_file(path)
    with _damage_told(path), path.open("rb") as raw:
        # By content: a downloaded "train.jsonl.gz" has often been unpacked on the way.
        zipped = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        yield BufferedReader(gzip.GzipFile(fileobj=raw)) if zipped else raw


def _utf8_lines(path: Path, stream: "BufferedReader[Any]") -> Iterator[str]:
    number, before, encoding = 0, 0, "utf-8-sig"
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise _too_long(path, number)
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            # The error counts from behind the mark.
            mark = len(codecs.BOM_UTF8) if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
            place = f"byte {before + mark + error.start}"
            raise _other_encoding(path, number, "UTF-8", place) from error
        if "\0" in text:
            raise _null_byte(path, number, before + line.index(0))
        yield text
        before += len(line)
        encoding = "utf-8"


def _wide(path: Path, stream: "BufferedReader[Any]", encoding: str) -> Iterator[str]:
    """The lines of UTF-16 or UTF-32, whose decoder works on blocks."""
    number = 0
    text = TextIOWrapper(stream, encoding=encoding, newline="\n")
    try:
        while line := text.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise _too_long(path, number)
            if "\0" in line:
                raise _null_byte(path, number, None)
            yield line
    except UnicodeDecodeError as error:
        place = "in this line or soon after it"
        raise _other_encoding(path, number + 1, encoding.upper(), place) from error
    finally:
        text.detach()  # the caller closes the stream


def announced_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32, under Python's name, if the first four bytes of a file announce it."""
    found = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    return None if found == "utf-8" else found.rsplit("-", 1)[0]


def require_file(path: Path) -> None:
    """Raise a DataError unless ``path`` is a file."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # name too long, folder not accessible; null in the name
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if path.is_dir():
        raise DataError(
            f"{path}: this is a folder. Name one file in it, such as {path / 'train.jsonl'}."
        )
    if not path.exists():
        raise DataError(f"{path}: no such file. Relative paths start at {Path.cwd()}.")


def well_formed(text: str) -> str:
    """The text with each lone surrogate, which JSON can contain, replaced by U+FFFD.

    No tokenizer accepts lone surrogates, and no UTF-8 file can contain them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed_value(value: Any) -> Any:
    """The value with every text in it :func:`well_formed`, in lists and objects too."""
    match value:
        case str():
            return well_formed(value)
        case list() | tuple():
            return [well_formed_value(part) for part in value]
        case dict():
            return {well_formed_value(key): well_formed_value(part) for key, part in value.items()}
    # Arrays, such as those of pandas and datasets.
    return well_formed_value(value.tolist()) if hasattr(value, "tolist") else value


def _read_bytes(path: Path) -> bytearray:
    # In blocks: asking for the limit at once would reserve as much memory before anything is read.
    limit = memory_limit() // _SPACE
    content = bytearray()
    with _unpacked(path) as stream:
        while block := stream.read1(_AT_ONCE):
            content += block
            if len(content) > limit:
                raise DataError(
                    f"{path}: is larger than {gigabytes(limit)} unpacked, and a JSON array is read "
                    "as a whole. Write one record a line, for example with "
                    f"jq -c '.[]' {path.name} > {path.name.split('.')[0]}.jsonl, or set "
                    f"{VARIABLE} to {_SPACE} times the gigabytes of the file"
                )
    return content


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Raise a DataError if the file cannot be read or its compressed data is damaged."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}: the gzip data is damaged or cut off ({error}). Copy or download it again."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _decode(content: bytearray, path: Path) -> str:
    mark, encoding = next(
        ((mark, name) for mark, name in _MARKS if content.startswith(mark)), (b"", "utf-8")
    )
    try:
        return str(memoryview(content)[len(mark) :], encoding)
    except UnicodeDecodeError as error:
        good = content[len(mark) : len(mark) + error.start].decode(encoding, "replace")
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        line, byte = good.count(chr(10)) + 1, len(mark) + error.start
        raise _other_encoding(path, line, name, f"byte {byte}") from error


def _other_encoding(path: Path, line: int, encoding: str, where: str) -> DataError:
    return DataError(
        f"{path}:{line}: not {encoding} text ({where}). "
        f"Save the file as UTF-8, for example with: iconv -f LATIN1 -t UTF-8 {path.name}"
    )


def _null_byte(path: Path, line: int, byte: int | None) -> DataError:
    place = "" if byte is None else f" (byte {byte})"
    return DataError(
        f"{path}:{line}: a null byte{place}. Either the file is UTF-16 "
        f"without a byte-order mark, which iconv -f UTF-16LE -t UTF-8 {path.name} converts, or "
        f"it is damaged; tr -d '\\000' < {path.name} removes null bytes"
    )


def _too_long(path: Path, line: int) -> DataError:
    return DataError(
        f"{path}:{line}: this line is over {LONGEST_LINE >> 20} MB, which is no record of a text. "
        "Write one record a line"
    )
