"""Files of kilobytes that unpack to gigabytes, and memory that is limited."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from aang_core import ConfigError, DataError, ReadReport
from tests.support.data import MEMORY, Columns, read_rows, read_table, stream_table
from tests.support.runs import rows_of_file, rows_of_lines

# The limit is set when everything is imported; torch alone reserves more.
LIMITED = """
import resource, sys
from pathlib import Path
import pyarrow.parquet, pyarrow.compute
from aang.corpora.labelled import Columns, read_rows
from aang_core.errors import AangError
from aang_core.objectives.stages import ReadReport
from aang.runs.prediction_files import rows_of_file, rows_of_lines
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (700 << 20),) * 2)
for name in sys.argv[1:]:
    try:
        if name == "-":
            count = sum(1 for _ in rows_of_lines(open("/dev/zero", "rb"), pairs=False))
        elif name.startswith("predict:"):
            path = Path(name.removeprefix("predict:"))
            count = sum(1 for _ in rows_of_file(path, Columns(), ReadReport()))
        else:
            count = len(read_rows(Path(name), Columns(), ReadReport()).examples)
        print(name, count)
    except AangError as error:
        print(name, error)
"""


def packed_table(path: Path, text: str, rows: int) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    table = pa.table({"text": texts, "label": ["a"] * rows})
    parquet.write_table(table, path, compression="zstd", store_schema=False)


def packed_lines(path: Path, line: bytes, times: int, head: bytes = b"") -> None:
    with gzip.open(path, "wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(line)


@pytest.mark.full
def test_bombs_and_limited_memory(tmp_path: Path) -> None:
    """Everything is read in blocks, and what is too much is told, with 700 MB to spare."""
    record = json.dumps({"text": "x" * 2**20, "label": "a"}).encode() + b"\n"
    packed_table(tmp_path / "a.parquet", "x " * 500_000, 900)
    packed_lines(tmp_path / "b.jsonl.gz", record, 300)
    packed_lines(tmp_path / "c.json.gz", b" " * 2**20, 80, b"[")
    packed_lines(tmp_path / "d.csv.gz", b"x" * 2**20 + b"\n", 80, b'text,label\n"')
    (tmp_path / "e.jsonl").write_bytes(b'{"text": "fine", "label": "a"}\n')
    assert all(path.stat().st_size < 2**20 for path in tmp_path.iterdir())
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    names += [f"predict:{tmp_path / 'a.parquet'}", "-"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *names],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, MEMORY: "0.25"},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "take over 256 MB of memory" in said[0], said
    assert "take over 256 MB of memory" in said[1], said
    assert "c.json.gz: is larger than 32 MB unpacked, and a JSON array" in said[2], said
    assert "field larger than field limit" in said[3], said
    assert said[4].endswith("e.jsonl 1")
    assert said[5].endswith("a.parquet 900")
    assert "standard input:1: this line is over 64 MB" in said[6], said


def test_bombs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, of files and a limit that are smaller, and with all the memory of this process."""
    monkeypatch.setenv(MEMORY, "0.008")
    record = json.dumps({"text": "x" * 2**20, "label": "a"}).encode() + b"\n"
    packed_table(tmp_path / "a.parquet", "x " * 500_000, 20)
    packed_lines(tmp_path / "b.jsonl.gz", record, 20)
    packed_lines(tmp_path / "c.json.gz", b" " * 2**20, 4, b"[")
    packed_lines(tmp_path / "d.csv.gz", b"x" * 2**20 + b"\n", 70, b'text,label\n"')
    for name, said in (
        ("a.parquet", "over 8 MB"),
        ("b.jsonl.gz", "over 8 MB"),
        ("c.json.gz", "1 MB unpacked"),
        ("d.csv.gz", "field limit"),
    ):
        with pytest.raises(DataError, match=said):
            read_rows(tmp_path / name, Columns(), ReadReport())
    assert sum(1 for _ in rows_of_file(tmp_path / "a.parquet", Columns(), ReadReport())) == 20
    with Path("/dev/zero").open("rb") as zeros, pytest.raises(DataError, match="standard input:1"):
        list(rows_of_lines(zeros, pairs=False))


def test_the_limit_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "x" * 2**20, "label": "a", "other": "y" * 2**22}) + "\n")
    monkeypatch.setenv(MEMORY, "0.0005")
    with pytest.raises(DataError, match=r"a\.jsonl: its first 1 rows .*AANG_DATA_GB"):
        list(read_table(path, ("text", "label")).rows)
    monkeypatch.setenv(MEMORY, "0.002")
    assert len(list(read_table(path, ("text", "label")).rows)) == 1
    monkeypatch.setenv(MEMORY, "much")
    with pytest.raises(ConfigError, match="AANG_DATA_GB=much: give the gigabytes"):
        list(read_table(path, ("text", "label")).rows)


def test_parquet_with_every_type_of_column(tmp_path: Path) -> None:
    """Reading texts once each changes no value."""
    columns = {
        "text": pa.array(["x", "y", None, "x"]),
        "words": pa.array([["u", "v"], [], None, ["u"]]),
        "large": pa.array(["p", "q", "r", "s"], pa.large_string()),
        "coded": pa.array(["p", "q", "p", "q"]).dictionary_encode(),
        "bytes": pa.array([b"1", b"2", b"3", b"4"]),
        "parts": pa.array([{"k": "v", "n": [1, 2]}] * 4),
        "number": pa.array([1, None, 3, 4]),
        "no": pa.nulls(4),
    }
    table = pa.table(columns)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    read = stream_table(tmp_path / "a.parquet")
    assert read.columns == tuple(columns)
    assert list(read.rows) == list(enumerate(table.to_pylist(), start=1))
    some = stream_table(tmp_path / "a.parquet", ("number", "missing"))
    assert [values for _, values in some.rows] == [{"number": n} for n in (1, None, 3, 4)]


def test_arrays_of_json(tmp_path: Path) -> None:
    """Faults are named by their place or their record."""
    path = tmp_path / "a.json"
    for text, count in (("[ ]\n", 0), ('\n[{"text":"a"} ,\n{"text":"b"}]\n', 2)):
        path.write_text(text)
        assert len(list(stream_table(path).rows)) == count
    for text, fault in {
        '[{"text":"a"}, {"text":]': "Expecting value at column 24",
        '[{"text":"a"} {"text":"b"}]': "Expecting ',' delimiter at column 15",
        '[{"text":"a"},\n]': "Expecting value at column 1 of line 2",
        '[{"text":"a"}': "Expecting ',' delimiter at column 14",
        '[{"text":"a"}] x': "Extra data at column 16",
        "[] []": "Extra data at column 4",
        '[{"text":"a"}, 7]': "record 2: expected an object in the array, found a number",
    }.items():
        path.write_text(text)
        with pytest.raises(DataError) as told:
            list(stream_table(path).rows)
        assert fault in str(told.value), text


def test_a_file_to_predict_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a text of some words"}\n' * 1000)
    monkeypatch.setenv(MEMORY, "0.0001")
    assert sum(1 for _ in rows_of_file(path, Columns(), ReadReport())) == 1000
