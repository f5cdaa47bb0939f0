"""Files as they come: encodings, sizes and labels that nobody planned."""

import codecs
import csv
import gzip
import json
from pathlib import Path

import pandas
import pytest
from aang_plugin_s2orc.source import S2orc
from aang_plugin_text.out_of_domain import OutOfDomain
from transformers import PreTrainedTokenizerFast

from aang_core import DataContext, DataError, Example, ReadReport
from tests.corpora.reading import read_labelled
from tests.support.data import (
    MOST_CLASSES,
    Columns,
    LabelledFile,
    TaskFiles,
    load_task,
    text_files,
    tokenize,
)

LINES = [
    "The parser reads a sentence — naïve.",
    "مرحبا بالعالم، هذا نص طويل",
    "The third line of it 😀",
]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def labelled(path: Path, rows: list[tuple[str, object]]) -> Path:
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    return write(path, "\n".join(lines))


def read(source: OutOfDomain | S2orc, path: Path) -> tuple[list[str], ReadReport]:
    report = ReadReport()
    context = DataContext([], domain=[path], out_of_domain=[path], report=report)
    return [example.text for example in source.examples(context)], report


ENCODINGS = {
    "UTF-8": b"",
    "UTF-8-sig": b"",
    "UTF-16": b"",
    "UTF-16-le": codecs.BOM_UTF16_LE,
    "UTF-16-be": codecs.BOM_UTF16_BE,
    "UTF-32": b"",
    "UTF-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("source", [OutOfDomain(), S2orc()], ids=["text", "s2orc"])
@pytest.mark.parametrize("packed", [False, True])
def test_plain_text_in_every_encoding_that_announces_itself(
    tmp_path: Path, source: OutOfDomain | S2orc, encoding: str, end: str, packed: bool
) -> None:
    content = ENCODINGS[encoding] + end.join([*LINES, ""]).encode(encoding)
    path = write(tmp_path / "a.txt", gzip.compress(content) if packed else content)
    texts, report = read(source, path)
    assert texts == LINES
    assert not report.counts


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_records_in_every_encoding_that_announces_itself(tmp_path: Path, encoding: str) -> None:
    records = [{"paper_id": str(i), "body_text": [{"text": t}]} for i, t in enumerate(LINES)]
    lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    papers = write(tmp_path / "a.jsonl", ENCODINGS[encoding] + lines.encode(encoding))
    assert read(S2orc(), papers)[0] == LINES
    csv = "text,label\n" + "\n".join(f'"{line}",x' for line in LINES)
    table = write(tmp_path / "a.csv", ENCODINGS[encoding] + csv.encode(encoding))
    assert [example.text for example in read_labelled(table)] == LINES


def test_text_that_is_cut_off_in_the_middle_of_a_character(tmp_path: Path) -> None:
    """What came before is not lost."""
    content = "\n".join(LINES[:2]).encode("utf-16") + b"\n\x00\x00\xd8"
    texts, report = read(OutOfDomain(), write(tmp_path / "a.txt", content))
    assert texts[0] == LINES[0]
    assert any("damaged" in line for line in report.lines())


def test_latin_1_says_where_and_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nplain,x\ncafé,y\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.csv:3: not UTF-8 text \(byte 22\).*iconv -f LATIN1"):
        read_labelled(path)
    text = write(
        tmp_path / "a.txt", f"{LINES[0]}\n".encode() + "Zürich, a long line".encode("latin-1")
    )
    texts, report = read(OutOfDomain(), text)
    assert texts == LINES[:1]
    assert report.first["line that is not UTF-8, skipped"] == f"{text}:2"


NULL_ON_LINE_3 = {
    "a.csv": b"text,label\nfine,x\nb\x00d,x\n",
    "a.tsv": b"text\tlabel\nfine\tx\nb\x00d\tx\n",
    "a.jsonl": b'{"text": "fine", "label": "x"}\n\n{"text": "b\x00d", "label": "x"}\n',
    "a.json": b'[{"text": "fine", "label": "x"},\n\n{"text": "b\x00d", "label": "x"}]\n',
}


@pytest.mark.parametrize("name", NULL_ON_LINE_3)
def test_null_bytes_say_where_and_what_to_do(tmp_path: Path, name: str) -> None:
    """UTF-16 without a byte-order mark is the usual reason."""
    path = write(tmp_path / name, "text\tlabel\nfine\tx\n".encode("utf-16-le"))
    with pytest.raises(DataError, match=r":1: a null byte \(byte 1\).*UTF-16LE.*tr -d"):
        read_labelled(path)
    path = write(tmp_path / name, NULL_ON_LINE_3[name])
    place = NULL_ON_LINE_3[name].index(0)
    with pytest.raises(DataError, match=rf":3: a null byte \(byte {place}\)"):
        read_labelled(path)


def test_null_bytes_in_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", f"{LINES[0]}\n{LINES[2]}\0\n")
    texts, report = read(OutOfDomain(), path)
    assert texts == LINES[:1]
    assert report.first["line with null bytes, skipped"] == f"{path}:2"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b" \r\n \r\n"])
def test_empty_files(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(DataError, match=r"a\."):
        load_task(write(tmp_path / name, content))


def test_gzip_files_that_unpack_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines have a limit, wherever they are read."""
    monkeypatch.setattr(text_files, "LONGEST_LINE", 2**20)
    good = b"A line of ordinary length.\n"
    packed = write(tmp_path / "a.jsonl.gz", gzip.compress(bytes(2**21)))
    assert packed.stat().st_size < 2**12
    with pytest.raises(DataError, match=r"a\.jsonl\.gz:1: line over 1 MB"):
        read_labelled(packed)
    lines = good + b"x" * (2**20 - 1) + b"\n" + b"x" * (3 * 2**20 + 7) + b"\n" + good
    texts, report = read(S2orc(), write(tmp_path / "b.txt.gz", gzip.compress(lines)))
    assert texts == [good.decode().strip(), "x" * (2**20 - 1), good.decode().strip()]
    assert report.counts == {"line over 1 MB, skipped": 1}
    assert report.first == {"line over 1 MB, skipped": f"{tmp_path / 'b.txt.gz'}:3"}


def test_lines_of_megabytes(tmp_path: Path) -> None:
    long = "word " * 400_000
    rows: list[tuple[str, object]] = [(long, "a"), ("short", "b")]
    examples = read_labelled(labelled(tmp_path / "a.jsonl", rows))
    assert [len(example.text) for example in examples] == [2_000_000, 5]
    assert read(OutOfDomain(), write(tmp_path / "a.txt", long))[0] == [long.strip()]


def test_labels_that_look_alike_are_told(tmp_path: Path) -> None:
    """They stay apart: whether they are meant to be one is not for us to say."""
    labels = [
        "Yes",
        "yes",
        "not entailed",
        "not  entailed",
        "caf\u00e9",
        "cafe\u0301",
        "x",
        "x\u200b",
    ]
    path = labelled(tmp_path / "a.jsonl", [(f"text {i}", labels[i % 8]) for i in range(32)])
    report = ReadReport()
    task = load_task(path, report=report)
    assert len(task.labels) == 8
    (told,) = [line for line in report.lines() if "differ only" in line]
    assert "'Yes' and 'yes'" in told
    assert "'not  entailed' and 'not entailed'" in told
    assert "so do 1 more groups" in told
    report = ReadReport()
    data = LabelledFile(TaskFiles("aux", path, None, None, Columns()), text="text", label="label")
    list(data.examples(DataContext([], report=report)))
    assert any("differ only" in line for line in report.lines())
    report = ReadReport()
    load_task(labelled(tmp_path / "b.jsonl", [("a", "x"), ("b", "y")] * 4), report=report)
    assert not any("differ only" in line for line in report.lines())


def test_quotes_of_csv_in_a_file_with_tabs_are_told(tmp_path: Path) -> None:
    """pandas writes them, and they stay: in TSV, AANG takes quotes for a part of the text."""
    texts = ['He said "hello" to me', '"Why?" he asked', '"A quotation."', "no quotes", '""', "end"]
    frame = pandas.DataFrame({"text": texts * 2, "label": ["a", "b"] * 6})
    frame.to_csv(tmp_path / "pandas.tsv", sep="\t", index=False)
    report = ReadReport()
    read_labelled(tmp_path / "pandas.tsv", report=report)
    (told,) = report.lines()
    assert told.startswith("8 × text in quotes")
    assert "pandas.tsv:2" in told
    frame.to_csv(tmp_path / "plain.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONE)
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    for name in ("plain.tsv", "pandas.csv"):
        report = ReadReport()
        read_labelled(tmp_path / name, report=report)
        assert not report.lines()


@pytest.mark.parametrize(
    ("labels", "names"), [([True, False], ("False", "True")), ([7, 10], ("10", "7"))]
)
def test_labels_that_are_no_text(tmp_path: Path, labels: list[object], names: tuple[str]) -> None:
    path = labelled(tmp_path / "a.jsonl", [(f"text {i}", labels[i % 2]) for i in range(8)])
    assert load_task(path).labels == names


def test_texts_in_train_and_dev_are_counted(tmp_path: Path) -> None:
    rows: list[tuple[str, object]] = [(f"text {i}", "ab"[i % 2]) for i in range(12)]
    report = ReadReport()
    load_task(
        labelled(tmp_path / "train.jsonl", rows),
        labelled(tmp_path / "dev.jsonl", rows[:3]),
        labelled(tmp_path / "test.jsonl", rows[:5]),
        report=report,
    )
    assert report.counts["dev text that is also in the training data"] == 3
    assert report.counts["test text that is also in the training data"] == 5


@pytest.mark.full
def test_a_hundred_thousand_classes_are_refused_at_once(tmp_path: Path) -> None:
    assert_refused(tmp_path, classes=100_000)


def test_one_class_too_many_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, classes=MOST_CLASSES + 1)


def assert_refused(folder: Path, *, classes: int) -> None:
    path = labelled(folder / "a.jsonl", [("text", f"{i} " * 20) for i in range(classes)])
    said = rf"{classes} different labels.*{MOST_CLASSES}.*--label"
    with pytest.raises(DataError, match=said) as told:
        load_task(path)
    assert len(str(told.value)) < 1000


def test_duplicate_ids(tmp_path: Path) -> None:
    """The first paper with an id counts, and others are reported."""
    records = [{"paper_id": "7", "body_text": [{"text": line}]} for line in LINES]
    texts, report = read(S2orc(), write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, records))))
    assert texts == LINES[:1]
    assert report.counts["paper that came before, skipped"] == 2


ODD_TEXTS = [
    "x",
    "word " * 100_000,
    "\u200b\u200d\ufeff",
    "\u202e\u2066",
    "\x01\x02",
    "مرحبا بالعالم",
    "שלום עולם",
    "👩\u200d💻🏳️\u200d🌈",
    "a\u0300\u0301\u0302" * 500,
    "日本語のテキスト",
    "[CLS] [SEP] <s> </s> [MASK]",
]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_odd_texts_become_rows(request: pytest.FixtureRequest, tmp_path: Path, family: str) -> None:
    """One of a single token, one of a hundred thousand, and those of which nothing is left."""
    tokenizer: PreTrainedTokenizerFast = request.getfixturevalue(family)
    report = ReadReport()
    examples = [Example(text) for text in ODD_TEXTS]
    rows = tokenize(examples, tokenizer, max_length=16, cache=tmp_path, report=report)
    assert len(rows) == len(ODD_TEXTS)
    assert int(rows.lengths.max()) == 16
    assert int(rows.lengths.min()) >= 2
    expected = {"bert": 3, "roberta": 0}[family]
    told = {e: n for e, n in report.counts.items() if "without a token" in e}
    assert sum(told.values()) >= expected


def test_a_language_that_the_tokenizer_does_not_know_is_told(
    bert: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    report, texts = ReadReport(), ["the 电影 很好看", "the street is wet"]
    for text in texts:
        tokenize([Example(text)], bert, max_length=16, cache=None, report=report, source=text)
    (note,) = [note for note in report.notes if "unknown to the tokenizer" in note]
    assert f"of the letters of {texts[0]} are unknown to the tokenizer; an encoder for" in note


def test_bytes_of_an_emoji_are_no_other_language(
    roberta: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    report, examples = ReadReport(), [Example("so 👩\u200d💻🏳️\u200d🌈"), Example("这个电影很好看")]
    for example in examples:
        tokenize([example], roberta, max_length=16, cache=None, report=report)
    assert [note[:28] for note in report.notes] == ["100% of the letters of data "]
