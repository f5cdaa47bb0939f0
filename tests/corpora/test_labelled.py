"""Reading examples from one file: every format, and every fault a file can have."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset
from pyarrow import parquet

from aang_core import DataError, Example, ReadReport
from tests.corpora.reading import read_labelled

RECORDS: list[dict[str, object]] = [
    {"text": 'He said "no", twice.', "label": "yes"},
    {"text": "Zürich — naïve\u2028café", "label": "no"},
]
EXAMPLES = [Example(str(r["text"]), label=str(r["label"])) for r in RECORDS]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_json_lines(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def as_csv(records: list[dict[str, object]]) -> str:
    rows = [
        ",".join(f'"{str(v).replace(chr(34), chr(34) * 2)}"' for v in r.values()) for r in records
    ]
    return "\n".join([",".join(records[0]), *rows]) + "\n"


def as_tsv(records: list[dict[str, object]]) -> str:
    return "\n".join(
        "\t".join(map(str, row)) for row in [records[0], *(r.values() for r in records)]
    )


FORMATS: dict[str, Callable[[list[dict[str, object]]], str]] = {
    "a.jsonl": as_json_lines,
    "a.ndjson": as_json_lines,
    "lines.json": as_json_lines,
    "array.json": lambda records: json.dumps(records, indent=1),
    "a.csv": as_csv,
    "a.tsv": as_tsv,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_text_format_gives_the_same_examples(tmp_path: Path, name: str, end: str) -> None:
    content = FORMATS[name](RECORDS).replace("\n", end)
    assert read_labelled(write(tmp_path / name, content)) == EXAMPLES


@pytest.mark.parametrize("name", FORMATS)
def test_gzipped_files_are_read(tmp_path: Path, name: str) -> None:
    content = gzip.compress(FORMATS[name](RECORDS).encode())
    assert read_labelled(write(tmp_path / f"{name}.gz", content)) == EXAMPLES


def test_a_file_named_gz_that_is_not_gzipped_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.gz", as_json_lines(RECORDS))
    assert read_labelled(path) == EXAMPLES


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", FORMATS)
def test_byte_order_marks_are_understood(tmp_path: Path, name: str, encoding: str) -> None:
    content = FORMATS[name](RECORDS).encode(encoding)
    assert read_labelled(write(tmp_path / name, content)) == EXAMPLES


def test_parquet(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "a.parquet")
    assert read_labelled(tmp_path / "a.parquet") == EXAMPLES
    twice = pa.table([["one"], ["a"], ["b"]], names=["text", "label", "label"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match="column 'label' occurs twice"):
        read_labelled(tmp_path / "twice.parquet")


def test_parquet_with_categorical_columns(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(RECORDS)
    table = table.set_column(1, "label", table.column("label").dictionary_encode())
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read_labelled(tmp_path / "a.parquet") == EXAMPLES


def test_parquet_that_datasets_wrote_has_names_of_classes(tmp_path: Path) -> None:
    names = sorted({str(row["label"]) for row in RECORDS}, reverse=True)
    rows = Dataset.from_list(RECORDS).cast_column("label", ClassLabel(names=names))
    rows.to_parquet(tmp_path / "a.parquet")
    assert read_labelled(tmp_path / "a.parquet") == EXAMPLES


def test_pairs_and_columns_of_other_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'index\ts1\ts2\ty\n0\tHe said "no\tNo\tentailed\n')
    examples = read_labelled(path, text="s1", text_pair="s2", label="y")
    assert examples == [Example('He said "no', "No", "entailed")]


def test_a_pair_column_left_unread_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,text_pair,label\na,b,c\n")
    report = ReadReport()
    assert read_labelled(path, report=report) == [Example("a", label="c")]
    assert "--text-pair" in report.lines()[0]


def test_csv_fields_may_hold_line_breaks_and_be_long(tmp_path: Path) -> None:
    long = "word " * 40_000
    path = write(tmp_path / "a.csv", f'text,label\n"two\nlines",a\n{long},b\n')
    assert [example.text for example in read_labelled(path)] == ["two\nlines", long]


@pytest.mark.parametrize(
    ("written", "label", "reported"),
    [
        (1, "1", False),
        (1.0, "1", True),
        ("1.0", "1", True),
        ("-2.00", "-2", True),
        (-0.0, "0", True),
        ("1.5", "1.5", False),
        (True, "True", False),
        (" spam ", "spam", True),
        ("v1.0", "v1.0", False),
    ],
)
def test_labels_are_written_in_one_way(
    tmp_path: Path, written: object, label: str, reported: bool
) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({"text": "x", "label": written}))
    report = ReadReport()
    assert read_labelled(path, report=report)[0].label == label
    assert bool(report.counts) == reported


def test_labels_agree_between_csv_and_parquet(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": ["a", "b"], "label": [1.0, 0.0]}), tmp_path / "a.parquet")
    from_parquet = read_labelled(tmp_path / "a.parquet")
    assert from_parquet == read_labelled(write(tmp_path / "a.csv", "text,label\na,1\nb,0\n"))


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", r'{"text": "a\ud800b \ud83d\ude00", "label": "x"}')
    report = ReadReport()
    assert read_labelled(path, report=report)[0].text == "a\ufffdb \N{GRINNING FACE}"
    assert sum(report.counts.values()) == 1


OK = '{"text": "a", "label": "x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", OK + '{"text": "a", "label": }', ["a.jsonl:2", "not valid JSON", "column 24"]),
        ("a.jsonl", OK + "[1]", ["a.jsonl:2", "found [1]"]),
        ("a.jsonl", OK + '"text"', ["a.jsonl:2", 'found "text"']),
        ("a.jsonl", OK + "null", ["a.jsonl:2", "found null"]),
        ("a.jsonl", OK + "7", ["a.jsonl:2", "found 7"]),
        ("a.jsonl", "[" * 100_000, ["a.jsonl:1"]),
        ("a.jsonl", '{"text": "a", "label": ' + "1" * 5000 + "}", ["a.jsonl:1"]),
        ("a.jsonl", '{"sentence": "a", "label": "x"}', ["a.jsonl:1", "'sentence'", "--text"]),
        ("a.jsonl", OK + '{"text": "a", "y": 1}', ["a.jsonl:2", "'label'", "'y'"]),
        ("a.jsonl", OK + '{"text": null, "label": "x"}', ["a.jsonl:2", "'text'", "null"]),
        ("a.jsonl", OK + '{"text": "", "label": "x"}', ["a.jsonl:2", "'text'", "empty"]),
        ("a.jsonl", OK + r'{"text": " \n\t ", "label": "x"}', ["a.jsonl:2", "empty"]),
        ("a.jsonl", OK + '{"text": ["a"], "label": "x"}', ["a.jsonl:2", "['a']", "not text"]),
        ("a.jsonl", OK + '{"text": NaN, "label": "x"}', ["a.jsonl:2", "null"]),
        ("a.jsonl", OK + '{"text": "a", "label": null}', ["a.jsonl:2", "'label'", "null"]),
        ("a.jsonl", OK + '{"text": "a", "label": NaN}', ["a.jsonl:2", "'label'", "null"]),
        ("a.jsonl", OK + '{"text": "a", "label": " "}', ["a.jsonl:2", "'label'", "empty"]),
        ("a.jsonl", OK + '{"text": "a", "label": 0.73}', ["a.jsonl:2", "0.73", "--label"]),
        ("a.jsonl", OK + '{"text": "a", "label": Infinity}', ["a.jsonl:2", "inf"]),
        ("a.jsonl", OK + '{"text": "a", "label": ["x", "y"]}', ["a.jsonl:2", "one label"]),
        ("a.json", '[{"text": "a", "label": "x"}, 3]', ["a.json, record 2", "found 3"]),
        ("a.json", '[\n{"text": "a",\n]', ["a.json", "of line 3"]),
        ("a.csv", "text,label\na,x\nb\n", ["a.csv:3", "1 field,", "2 columns"]),
        ("a.csv", 'text,label\n"a\nb",x\nc,d,e\n', ["a.csv:4", "3 fields"]),
        ("a.csv", 'text,label\na,x\n"b"c,x\n', ["a.csv:3", "broken CSV", "quotes"]),
        ("a.csv", 'text,label\na,x\n"b,x\n\n', ["a.csv:3", "broken CSV"]),
        ("a.csv", "text;label\na;x\n", ["a.csv", "'text;label'", "semicolons"]),
        ("a.csv", "text,text,label\na,b,x\n", ["a.csv:1", "'text'", "twice"]),
        ("a.csv", "text,label\n,x\n", ["a.csv:2", "empty"]),
        ("a.csv", "", ["a.csv", "empty"]),
        ("a.tsv", "text\tlabel\na\tx\nb\tc\td\n", ["a.tsv:3", "3 fields"]),
        ("a.tsv", "text\tlabel\na\t\n", ["a.tsv:2", "'label'", "empty"]),
        ("a.tsv", "\n", ["a.tsv", "empty"]),
        ("a.parquet", "PAR1 but not really", ["a.parquet", "Parquet"]),
        ("a.txt", "x", ["a.txt", "'.txt'", ".jsonl"]),
        ("a", "x", ["'(none)'", ".jsonl"]),
        ("a.jsonl", OK.encode() + "é".encode("latin-1"), ["a.jsonl:2", "byte 28", "UTF-8"]),
        ("a.csv", "text,label\nx".encode("utf-16") + b"\x00", ["a.csv:2", "UTF-16"]),
        ("a.jsonl.gz", gzip.compress(b"x" * 1000, mtime=0)[:-12], ["a.jsonl.gz", "damaged"]),
    ],
)
def test_a_fault_is_named_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, said: list[str]
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        read_labelled(path)
    for part in said:
        assert part in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_pair_columns_are_checked_as_well(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a", "other": null, "label": "x"}')
    with pytest.raises(DataError, match=r"a\.jsonl:1: column 'other' is null"):
        read_labelled(path, text_pair="other")
    with pytest.raises(DataError, match="--text-pair"):
        read_labelled(path, text_pair="missing")


def test_faults_in_parquet_are_named_by_row(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": ["a", None], "label": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 'text' is null"):
        read_labelled(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no column 'y'; the columns are 'text', 'label'"):
        read_labelled(tmp_path / "a.parquet", label="y")


def test_parquet_text_that_is_not_utf8(tmp_path: Path) -> None:
    text = pa.array([b"fine", b"caf\xe9"]).view(pa.string())
    parquet.write_table(pa.table({"text": text, "label": ["x", "y"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="after row 0"):
        read_labelled(tmp_path / "a.parquet")


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_labelled(tmp_path / "nope.jsonl")
    with pytest.raises(DataError, match="this is a folder"):
        read_labelled(tmp_path)


@pytest.mark.parametrize(
    ("name", "header", "separator"),
    [
        ("a.csv", "text\tlabel", "tabs"),
        ("a.tsv", "text,label", "commas"),
    ],
)
def test_columns_that_something_else_separates(
    tmp_path: Path, name: str, header: str, separator: str
) -> None:
    path = tmp_path / name
    path.write_text(f"{header}\ngood;pos\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"its names are separated by {separator}"):
        read_labelled(path)


def test_the_column_of_broken_json_is_named_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "never ends}\n')
    with pytest.raises(DataError, match="Unterminated string starting at column 10"):
        read_labelled(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\na,x\ntext,label\nb,y\n"),
        ("bom.csv", "text,label\na,x\n\ufefftext,label\nb,y\n"),
        ("other-order.csv", "text,label\na,x\nlabel,text\ny,b\n"),
        ("quoted.csv", '"text","label"\n"a","x"\n"text","label"\n"b","y"\n'),
        ("a.tsv", "id\ttext\tlabel\n1\ta\tx\nid\ttext\tlabel\n1\tb\ty\n"),
    ],
)
def test_a_repeated_header_is_named_by_its_line(tmp_path: Path, name: str, content: str) -> None:
    """Two files put together: its names would be a text and a class of their own."""
    with pytest.raises(DataError, match=rf"{name}:3: this line repeats the header"):
        read_labelled(write(tmp_path / name, content))


def test_a_text_may_be_the_name_of_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\ntext,x\nlabel,y\n")
    assert read_labelled(path) == [Example("text", label="x"), Example("label", label="y")]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('text, label\n"one, two", "x"\n"three", "y"\n', ["one, two", "three"]),
        ('text,label\n"a ""b"" c", "x"\n"three",  "y"\n', ['a "b" c', "three"]),
        ('label, text\n"x", "one, two"\n"y", " three"\n', ["one, two", " three"]),
        ('sep=;\ntext; label\n"one; two"; "x"\n"three"; "y"\n', ["one; two", "three"]),
    ],
)
def test_quotes_after_a_space_are_quotes(tmp_path: Path, content: str, texts: list[str]) -> None:
    found = read_labelled(write(tmp_path / "a.csv", content))
    assert found == [Example(texts[0], label="x"), Example(texts[1], label="y")]


def test_spaces_of_texts_are_kept_where_no_quote_follows(tmp_path: Path) -> None:
    content = 'label,text\nx, one\ny,"He said, ""no"""\n'
    found = read_labelled(write(tmp_path / "a.csv", content))
    assert [example.text for example in found] == [" one", 'He said, "no"']


@pytest.mark.parametrize("first", ["sep=,", "sep=;", "SEP=;\r", '"sep=|"', "sep=\t"])
def test_excels_first_line_names_the_separator(tmp_path: Path, first: str) -> None:
    mark = first.strip('\r"')[-1]
    content = f'{first}\ntext{mark}label\n"a{mark}b"{mark}x\n{mark}y\n'
    with pytest.raises(DataError, match=r"a\.csv:4: column 'text' is empty"):
        read_labelled(write(tmp_path / "a.csv", content))
    assert read_labelled(write(tmp_path / "b.csv", content.replace(f"\n{mark}y", ""))) == [
        Example(f"a{mark}b", label="x")
    ]


@pytest.mark.parametrize("name", ["a.raw", "a.txt", "a", "a.dat.gz", "a.jsonl.bak"])
def test_json_lines_are_known_by_their_content(tmp_path: Path, name: str) -> None:
    content = as_json_lines(RECORDS).encode()
    path = write(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    assert read_labelled(path) == EXAMPLES
    broken = write(tmp_path / "broken.raw", as_json_lines(RECORDS) + "{'text'\n")
    with pytest.raises(DataError, match=r"broken\.raw:3: this is not valid JSON"):
        read_labelled(broken)


def test_quotes_after_a_space_that_enclose_nothing(tmp_path: Path) -> None:
    """They are part of a text, as in what somebody said."""
    path = tmp_path / "a.csv"
    path.write_text('label,text\na, "Hello" she said\nb,"fine, thanks"\n')
    assert [e.text for e in read_labelled(path)] == [' "Hello" she said', "fine, thanks"]
