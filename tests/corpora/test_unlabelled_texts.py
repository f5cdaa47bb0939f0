"""Text without labels: its formats, and that nothing of dev or test is in it."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from aang_core import DataError, Example, ReadReport
from tests.support.data import (
    Columns,
    LabelledTask,
    UnlabelledTexts,
    draw_train,
)

TRAIN = tuple(Example(f"train {i}", label="ab"[i % 2]) for i in range(20))
TASK = LabelledTask(
    "made", TRAIN, (Example("Of  dev", label="a"),), (Example("of test", label="b"),), ("a", "b")
)
PAIRS = LabelledTask(
    "made",
    (Example("one", "two", "a"), Example("three", "four", "b")),
    (Example("premise", "of dev", "a"),),
    (),
    ("a", "b"),
)


def read(
    *places: object,
    task: LabelledTask = TASK,
    columns: Columns | None = None,
    report: ReadReport | None = None,
) -> list[Example]:
    report = ReadReport() if report is None else report
    return list(UnlabelledTexts([*map(str, places)], columns or Columns(), task, report))


def texts(examples: Sequence[Example]) -> list[str]:
    return [example.text for example in examples]


def json_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_line_of_plain_text_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("one\n\n  two \n", encoding="utf-8")
    (tmp_path / "more.txt.gz").write_bytes(gzip.compress(b"three\n"))
    assert read(path) == [Example("one"), Example("two")]
    assert texts(read(tmp_path)) == ["three", "one", "two"]
    assert texts(read(tmp_path / "t*.txt", path)) == ["one", "two"]


def test_records_in_a_file_of_plain_text_are_noted(tmp_path: Path) -> None:
    """Each line is a text, whatever it looks like, but most likely that is not meant."""
    path, report = tmp_path / "texts.txt", ReadReport()
    path.write_text('{"text": "one"}\n{braces}\n', encoding="utf-8")
    assert texts(read(path, report=report)) == ['{"text": "one"}', "{braces}"]
    (line,) = report.lines()
    assert line.startswith("1 × line that looks like a JSON object")
    assert ".jsonl" in line


def test_tables_have_the_columns_of_the_end_task(tmp_path: Path) -> None:
    """The label is not read, whether it is there or not."""
    columns = Columns("review", None, "stars")
    parquet.write_table(pa.table({"review": ["parquet"]}), tmp_path / "e.parquet")
    (tmp_path / "a.csv").write_text("stars,review\n5,csv\n", encoding="utf-8")
    (tmp_path / "b.json").write_text('[{"review": "json"}]', encoding="utf-8")
    json_lines(tmp_path / "c.jsonl", {"review": "jsonl", "stars": 3})
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(b'{"review": "zipped"}\n'))
    (tmp_path / "f.tsv").write_text("review\ntsv\n", encoding="utf-8")
    found = read(tmp_path, columns=columns)
    assert texts(found) == ["csv", "json", "jsonl", "zipped", "parquet", "tsv"]
    assert {example.label for example in found} == {None}


def test_both_texts_of_pairs_are_read(tmp_path: Path) -> None:
    """A pair is that of dev only if both of its texts are."""
    path = json_lines(
        tmp_path / "pairs.jsonl",
        {"text": "premise", "second": "of dev"},
        {"text": "premise", "second": "another"},
    )
    columns = Columns(text_pair="second")
    assert read(path, task=PAIRS, columns=columns) == [Example("premise", "another")]
    plain = tmp_path / "plain.txt"
    plain.write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match="two texts per example; give a table with the columns"):
        read(plain, task=PAIRS, columns=columns)


def test_dev_and_test_are_left_out(tmp_path: Path) -> None:
    """Whatever their case and spaces, and it is told once however often the texts are read."""
    path = tmp_path / "texts.txt"
    path.write_text("train 0\nof DEV\nof   test\nof test\nnew\n", encoding="utf-8")
    report = ReadReport()
    unlabelled = UnlabelledTexts([str(path)], Columns(), TASK, report)
    for _ in range(2):
        assert texts(list(unlabelled)) == ["train 0", "new"]
    assert report.lines() == [
        f"1 × unlabelled text that is also in dev, left out (first: {path}:2)",
        f"2 × unlabelled text that is also in test, left out (first: {path}:3)",
    ]


def test_parts_of_a_long_text_of_dev_are_left_out(tmp_path: Path) -> None:
    """Readers divide texts at lines or blank lines; a short part may be in any text."""
    parts = "Dear team,", "please send the report before\nnoon, to both of us at least."
    dev = Example("\n\n".join(parts), label="a")
    task = LabelledTask("made", TRAIN, (dev,), (), ("a", "b"))
    assert [task.part_with(Example(part)) for part in parts] == [None, "dev"]
    path = tmp_path / "texts.txt"
    line = "A single line of fifty characters or more, I hope."
    path.write_text(f"{line}\nnew\n", encoding="utf-8")
    pair = Example("premise", f"{line}\nMore of it.", label="a")
    assert texts(read(path, task=LabelledTask("made", TRAIN, (), (pair,), ("a", "b")))) == ["new"]


def test_what_a_draw_leaves_out(tmp_path: Path) -> None:
    drawn, _ = draw_train(TASK, 6, 0)
    rest = read("rest", task=drawn)
    assert len(rest) == 14
    assert not set(texts(rest)) & set(texts(drawn.train))
    assert {example.label for example in rest} == {None}
    more = tmp_path / "rest"
    more.write_text("in a file\n", encoding="utf-8")
    assert read(more, "rest", task=drawn) == [*rest, Example("in a file")]


def test_a_draw_of_all_rows_leaves_nothing() -> None:
    with pytest.raises(DataError, match="--train-rows takes all 20 training rows"):
        read("rest", task=draw_train(TASK, 20, 0)[0])


def test_the_rest_has_nothing_of_dev() -> None:
    """A training row may be in dev as well, which is told when the task is read."""
    task = LabelledTask("made", TRAIN, (Example("TRAIN 3", label="b"),), (), ("a", "b"))
    drawn = next(d for s in range(9) if TRAIN[3] not in (d := draw_train(task, 6, s)[0]).train)
    report = ReadReport()
    assert "train 3" not in texts(read("rest", task=drawn, report=report))
    assert "unlabelled text that is also in dev, left out" in report.counts


def test_what_is_no_text_is_skipped_and_counted(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "texts.jsonl", {"text": None}, ["text"], {"text": " "}, {"text": "\ud800 good"}
    )
    report = ReadReport()
    assert texts(read(path, report=report)) == ["\ufffd good"]
    assert report.lines() == [
        f"2 × unlabelled row without a text, skipped (first: {path}:1)",
        f"1 × unlabelled line that is not a JSON object, skipped (first: {path}:2)",
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"txt": "one"}\n', r"a.jsonl:1: there is no column 'text'.* with --text"),
        ("a.csv", "txt\none\n", r"a.csv:2: there is no column 'text'"),
        ("a.csv", 'text\n"one\n', "broken CSV"),
        ("a.txt", "\n", r"a.txt: no usable text: nothing in it"),
        ("a.txt", "of dev\n", r"no usable text: 1 × unlabelled text that is also in dev"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read(tmp_path / name)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--unlabelled .*none.txt: no such file"):
        read(tmp_path / "none.txt")
