"""Generic text from plain files."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from aang_plugin_text.out_of_domain import OutOfDomain

from aang_core import ConfigError, DataContext, DataError, ReadReport

BOOK = (
    "It was the best of times,\nit was the worst of times.\n\n\n"
    "There were a king with a large jaw\nand a queen.\n"
)
LINES = "The first sentence of a list.\nThe second sentence of a list.\n"


def texts(*places: Path, report: ReadReport | None = None, **options: Any) -> list[str]:
    context = DataContext((), out_of_domain=places, report=report or ReadReport())
    return [example.text for example in OutOfDomain(**options).examples(context)]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(BOOK, encoding="utf-8")
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    return path


def test_paragraphs_where_there_are_blank_lines(book: Path) -> None:
    assert texts(book) == [
        "It was the best of times, it was the worst of times.",
        "There were a king with a large jaw and a queen.",
    ]


def test_lines_where_there_are_none(lines: Path) -> None:
    assert texts(lines) == LINES.splitlines()


def test_the_unit_can_be_said(book: Path, lines: Path) -> None:
    assert texts(book, unit="line", min_length=0) == [x for x in BOOK.splitlines() if x]
    assert texts(lines, unit="paragraph") == [" ".join(LINES.splitlines())]


def test_folders_globs_and_limits(tmp_path: Path, book: Path, lines: Path) -> None:
    assert len(texts(tmp_path)) == 4
    assert len(texts(tmp_path / "*.txt")) == 2
    assert len(texts(book, lines, limit=3)) == 3


def test_short_texts_and_other_encodings_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes(b"short\na line that is long enough\n\xff\xfe\xfa not of this world at all\n")
    report = ReadReport()
    assert texts(path, report=report) == ["a line that is long enough"]
    assert report.counts == {
        "text under 20 characters, skipped": 1,
        "line that is not UTF-8, skipped": 1,
    }


@pytest.mark.parametrize("broken", [b"caf\xe9 and a text that is not UTF-8", b"null \0 bytes"])
def test_a_line_that_cannot_be_read_is_no_blank_line(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "lines.txt"
    lines = [f"The sentence number {number} of a long list." for number in range(1000)]
    content = [line.encode() for line in lines]
    content[500] = broken
    path.write_bytes(b"\n".join(content) + b"\n")
    report = ReadReport()
    assert texts(path, report=report) == lines[:500] + lines[501:]
    assert report.counts.total() == 1
    whole = texts(path, unit="paragraph")
    assert whole == [" ".join(lines[:500] + lines[501:])]
    path.write_bytes(b"\n".join([*content[:700], b"", *content[700:]]))
    assert texts(path) == [" ".join(lines[:500] + lines[501:700]), " ".join(lines[700:])]


def test_a_line_that_looks_like_json_is_a_paragraph_like_others(tmp_path: Path) -> None:
    path = tmp_path / "manual.txt"
    paragraphs = [
        "A first paragraph of a manual.",
        '{"key": "a value as in JSON"}',
        "A second one, as long.",
    ]
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    assert texts(path) == paragraphs


@pytest.mark.parametrize("options", [{"unit": "word"}, {"limit": 0}, {"min_length": -1}])
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        OutOfDomain(**options)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--out-of-domain"):
        texts()
    with pytest.raises(DataError, match=r"none\.txt"):
        texts(tmp_path / "none.txt")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(DataError, match=r"empty\.txt"):
        texts(empty)
