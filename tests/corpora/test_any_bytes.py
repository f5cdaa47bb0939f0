"""Whatever the bytes of a file are, reading it gives examples or a DataError."""

import csv
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from aang_core import DataError
from tests.corpora.reading import read_labelled

PIECES = st.sampled_from(
    [
        b"text,label\n",
        b"text\tlabel\n",
        b'{"text": "a", "label": ',
        b'"x"}\n',
        b"1}\r\n",
        b'"a\nb",x\n',
        b'"',
        b"[",
        b"]",
        b"{",
        b",",
        b"\t",
        b"\n",
        b"\r",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
        b"PAR1",
        b"\\ud800",
        "\u2028é".encode(),
    ]
)
CONTENT = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(PIECES, st.binary(max_size=4)), max_size=12).map(b"".join),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet", "a.jsonl.gz", "a.csv.gz"]
)
@given(content=CONTENT)
@settings(max_examples=150, deadline=None)
def test_examples_or_a_data_error(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.write_bytes(content)
    _read(path)


@given(changes=st.dictionaries(st.integers(0, 2000), st.integers(0, 255), max_size=4))
@settings(max_examples=200, deadline=None)
def test_a_parquet_file_with_some_bytes_changed(folder: Path, changes: dict[int, int]) -> None:
    path = folder / "changed.parquet"
    parquet.write_table(pa.table({"text": ["one", "twö"] * 9, "label": ["a", "b"] * 9}), path)
    content = bytearray(path.read_bytes())
    for place, byte in changes.items():
        content[place % len(content)] = byte
    path.write_bytes(content)
    _read(path)


def _read(path: Path) -> None:
    with suppress(DataError):
        for example in read_labelled(path):
            assert example.text.strip()
            assert example.label
            # Nothing comes through that a tokenizer or a UTF-8 file would refuse.
            f"{example.text}{example.label}".encode()


TEXTS = st.text(
    st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=30
).filter(lambda text: bool(text.strip()))


@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_csv_gives_back_every_text_that_the_csv_module_wrote(
    folder: Path, texts: list[str]
) -> None:
    path = folder / "round.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([text, "x"] for text in texts)
    assert [example.text for example in read_labelled(path)] == texts
