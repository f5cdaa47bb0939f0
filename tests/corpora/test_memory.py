"""Files of kilobytes that unpack to gigabytes, and memory that is limited."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from aang_core import DataError, ReadReport
from tests.support.data import Columns, read_rows, stream_table
from tests.support.runs import rows_of_lines

# The limit is set when everything is imported; torch alone reserves more.
LIMITED = """
import resource, sys
from pathlib import Path
import pyarrow.parquet, pyarrow.compute
from aang.corpora.columns import Columns
from aang.corpora.labelled import read_rows
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
    """Everything is read in blocks, with 700 MB to spare."""
    record = json.dumps({"text": "x" * 2**20, "label": "a"}).encode() + b"\n"
    packed_table(tmp_path / "a.parquet", "x " * 500_000, 900)
    packed_lines(tmp_path / "b.jsonl.gz", record, 300)
    packed_lines(tmp_path / "c.csv.gz", b"x" * 2**20 + b"\n", 80, b'text,label\n"')
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "fine", "label": "a"}\n')
    assert all(path.stat().st_size < 2**20 for path in tmp_path.iterdir())
    names = [f"predict:{tmp_path / name}" for name in ("a.parquet", "b.jsonl.gz")]
    names += [str(tmp_path / name) for name in ("c.csv.gz", "d.jsonl")]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *names, "-"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].endswith("a.parquet 900")
    assert said[1].endswith("b.jsonl.gz 300")
    assert "field larger than field limit" in said[2], said
    assert said[3].endswith("d.jsonl 1")
    assert "standard input:1: this line is longer than 64 MB" in said[4], said


def test_lines_without_end_are_told(tmp_path: Path) -> None:
    """As above, with all the memory of this process."""
    packed_lines(tmp_path / "a.csv.gz", b"x" * 2**20 + b"\n", 70, b'text,label\n"')
    with pytest.raises(DataError, match="field limit"):
        read_rows(tmp_path / "a.csv.gz", Columns(), ReadReport())
    with Path("/dev/zero").open("rb") as zeros, pytest.raises(DataError, match="standard input:1"):
        list(rows_of_lines(zeros, pairs=False))


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
        '[{"text":"a"}, 7]': "record 2: expected a JSON object",
    }.items():
        path.write_text(text)
        with pytest.raises(DataError) as told:
            list(stream_table(path).rows)
        assert fault in str(told.value), text
