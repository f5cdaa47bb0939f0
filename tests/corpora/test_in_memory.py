"""Data in memory is checked like a file, and messages name its rows."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, List, Value

from aang_core import DataError, Example, ReadReport
from tests.support.data import (
    Columns,
    LabelledRows,
    TableInMemory,
    UnlabelledTexts,
    load_task,
    read_rows,
    require_one_type,
    table_in_memory,
)

TEXTS = ["It rains.", "The sun shines.", "It snows.", "A fine day."]
LABELS = ["bad", "good", "bad", "good"]


def table(value: object, columns: Columns | None = None, *, labelled: bool = True) -> TableInMemory:
    return table_in_memory(value, "train", columns or Columns(), labelled=labelled)


def rows(value: object, columns: Columns | None = None) -> LabelledRows:
    columns = columns or Columns()
    return read_rows(table(value, columns), columns, ReadReport())


DATASET = Dataset.from_dict({"text": TEXTS, "label": [0, 1, 0, 1], "other": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    "value",
    [
        (TEXTS, LABELS),
        [TEXTS, LABELS],
        (np.array(TEXTS), np.array(LABELS)),
        (pd.Series(TEXTS), pd.Series(LABELS, dtype="category")),
        {"text": TEXTS, "label": LABELS},
        [{"text": t, "label": n} for t, n in zip(TEXTS, LABELS, strict=True)],
        pd.DataFrame({"label": LABELS, "text": TEXTS, "n": 4 * [None]}, index=[7, 7, 8, 9]),
        DATASET.cast_column("label", ClassLabel(names=["bad", "good"])),
        DATASET.cast_column("label", ClassLabel(names=["bad", "good"])).with_format("numpy"),
    ],
)
def test_every_form_is_read_alike(value: object, tmp_path: Path) -> None:
    """And its copy, read as a file, is the same."""
    read = rows(value)
    expected = [Example(t, label=n) for t, n in zip(TEXTS, LABELS, strict=True)]
    assert list(read.examples) == expected
    assert [place.rpartition(", ")[2] for place in read.places] == [f"row {i}" for i in range(4)]
    copy = tmp_path / "copy.jsonl"
    copy.write_text(table(value).copy(Columns().names()), encoding="utf-8")
    assert list(read_rows(copy, Columns(), ReadReport()).examples) == expected


def test_odd_text_survives_the_copy(tmp_path: Path) -> None:
    """Line separators, quotes, nulls and half a surrogate pair."""
    odd = ["a\u2028b\nc\rd\te", 'He said "no"', "a\0b", "x\ud800y", " padded "]
    value = (odd, [1, 2, 1, 2, 1])
    copy = tmp_path / "copy.jsonl"
    copy.write_text(table(value).copy(Columns().names()), encoding="utf-8")
    assert read_rows(copy, Columns(), ReadReport()).examples == rows(value).examples


def test_labels_of_pandas_and_numpy_are_those_of_files() -> None:
    """A column of integers that once had nulls holds floats."""
    frame = pd.DataFrame({"text": TEXTS, "label": [1.0, 2.0, 1.0, 2.0]})
    assert [e.label for e in rows(frame).examples] == ["1", "2", "1", "2"]
    assert rows((TEXTS, np.array([True, False] * 2))).examples[0].label == "True"
    frame["label"] = pd.array([1, 2, 1, 2], dtype="Int64")
    assert [e.label for e in rows(frame).examples] == ["1", "2", "1", "2"]


def test_pairs() -> None:
    columns = Columns(text_pair="second")
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    assert rows((pairs, LABELS), columns).examples[0] == Example(TEXTS[0], TEXTS[3], "bad")
    with pytest.raises(DataError, match=r"train list, row 1: holds 'x', which is not a pair"):
        rows(([("a", "b"), "x"], [1, 2]), columns)


def test_lists_of_class_ids_become_names() -> None:
    """As tags of tokens are."""
    tags = Dataset.from_dict({"tokens": [["a", "b"]], "tags": [[0, 1]]})
    tags = tags.cast_column("tags", List(ClassLabel(names=["O", "B"])))
    tags = tags.cast_column("tokens", List(Value("string")))
    (row,) = table(tags).table(["tokens", "tags"]).rows
    assert row == (0, {"tokens": ["a", "b"], "tags": ["O", "B"]})


def test_a_class_id_without_a_name() -> None:
    """Such as -100, by which token classifiers are told to leave a token out."""
    tags = Dataset.from_dict({"tokens": [["a", "b"]], "tags": [[0, -100]]})
    tags = tags.cast_column("tags", List(ClassLabel(names=["O", "B"])))
    with pytest.raises(DataError, match="is -100, and its features name the classes 0 to 1"):
        list(table(tags).table(["tokens", "tags"]).rows)


MARKS = [[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "value",
    [
        (TEXTS, np.array(MARKS)),
        (TEXTS, np.array(MARKS, dtype=np.float32)),
        (TEXTS, list(np.array(MARKS, dtype=bool))),
        (TEXTS, [[np.int64(mark) for mark in row] for row in MARKS]),
        pd.DataFrame({"text": TEXTS, "label": list(np.array(MARKS))}),
        Dataset.from_dict({"text": TEXTS, "label": MARKS}),
        Dataset.from_dict({"text": TEXTS, "label": np.array(MARKS, dtype=bool)}),
    ],
)
def test_rows_of_zeros_and_ones_mark_classes_by_their_place(value: object, tmp_path: Path) -> None:
    """And so does their copy."""
    copy = tmp_path / "copy.jsonl"
    copy.write_text(table(value).copy(Columns().names()), encoding="utf-8")
    for source in (table(value), copy):
        task = load_task(source, source)
        assert task.labels == ("0", "1", "2")
        assert [e.label for e in task.train] == [("0", "2"), ("1",), ("0", "1"), ()]


VERSIONS = ["3.10", "3.9", "3.1", "3.9"]


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(VERSIONS, dtype="category"),
        pd.Categorical(VERSIONS),
        VERSIONS,
    ],
)
def test_declared_classes_that_spell_numbers_are_classes(labels: Any) -> None:
    for value in ((TEXTS, labels), pd.DataFrame({"text": TEXTS, "label": labels})):
        task = load_task(table(value), table(value))
        assert [e.label for e in task.train] == VERSIONS
    named = DATASET.cast_column("label", ClassLabel(names=["3.10", "3.1"]))
    assert load_task(table(named), table(named)).labels == ("3.1", "3.10")


def test_categories_of_numbers_are_classes() -> None:
    """A missing one is missing."""
    frame = pd.DataFrame({"text": TEXTS, "label": pd.Categorical([1.5, 2.0, 1.5, 2.0])})
    assert load_task(table(frame), table(frame)).labels == ("1.5", "2")
    frame["label"] = pd.Categorical([1.5, None, 1.5, 2.0])
    with pytest.raises(DataError, match="row 1: column 'label' is null"):
        load_task(table(frame))


@pytest.mark.parametrize("names", [["1", "1.0"], ["a", "a "]])
def test_declared_classes_that_would_be_read_as_one(names: list[str]) -> None:
    labels = pd.Categorical(names * 2)
    for value in (
        DATASET.cast_column("label", ClassLabel(names=names)),
        pd.DataFrame({"text": TEXTS, "label": labels}),
        (TEXTS, labels),
        {"text": TEXTS, "label": labels},
    ):
        with pytest.raises(DataError, match=f"'{names[0]}' and '{names[1]}' would both be read"):
            load_task(table(value))


FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (FRAME[["text"]], "train DataFrame: there is no column 'label'; the columns are 'text'"),
        (FRAME.assign(text=[*TEXTS[:2], None, "x"]), "train DataFrame, row 2: column 'text' is nu"),
        (FRAME.assign(text=[*TEXTS[:2], float("nan"), "x"]), "row 2: column 'text' is null"),
        (FRAME.assign(text=[*TEXTS[:3], 3]), "row 3: column 'text' holds 3, which is not text"),
        (FRAME.assign(text=[*TEXTS[:3], "  "]), "row 3: column 'text' is empty"),
        (FRAME.assign(label=["a", "b", None, "a"]), "row 2: column 'label' is null"),
        (FRAME.assign(label=pd.array([1, 2, None, 1], dtype="Int64")), "row 2: column 'label' is"),
        (FRAME.assign(label=[pd.Timestamp(0)] * 4), "row 0: column 'label' holds Timestamp"),
        (FRAME[["text", "text", "label"]], "train DataFrame: column 'text' occurs twice"),
        (
            (TEXTS, LABELS[:3]),
            "train list: the columns differ in length: 'text' has 4, 'label' has 3",
        ),
        ({"text": TEXTS, "label": LABELS[:2]}, "differ in length: 'text' has 4, 'label' has 2"),
        ([{"text": "a", "label": "x"}, {"text": "b"}], "train list, row 1: there is no column 'la"),
        (FRAME.iloc[:0], "train DataFrame: it contains no examples"),
        (([], []), "train list: it contains no examples"),
        (TEXTS, "train: this list is not data that AANG reads; give a file, a pandas DataFrame"),
        (3, "train: this int is not data that AANG reads"),
        (DATASET.to_iterable_dataset(), "train: this IterableDataset is not data that AANG reads"),
    ],
)
def test_what_cannot_be_used_is_named(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        load_task(table(value))


def test_labels_of_mixed_type() -> None:
    """Numbers and missing values are one type; strings and numbers are two."""
    require_one_type(table((TEXTS, [1, 2.0, None, float("nan")])), "label")
    require_one_type(table((TEXTS, [["a"], ["b"], [], ["a"]])), "label")
    message = r"'label' mixes strings \(row 0: 'a'\) and numbers \(row 2: 1\)"
    with pytest.raises(DataError, match=message):
        require_one_type(table((TEXTS, ["a", "b", 1, "a"])), "label")
    mixed = FRAME.assign(label=np.array([1, 2, 1, True], dtype=object))
    with pytest.raises(DataError, match=r"mixes numbers .* and booleans \(row 3: True\)"):
        require_one_type(table(mixed), "label")


def test_a_label_of_dev_that_train_lacks_is_noted() -> None:
    columns, report = Columns(), ReadReport()
    dev = table_in_memory((["x", "y"], ["so-so", "good"]), "dev", columns)
    assert len(load_task(table((TEXTS, LABELS)), dev, report=report).dev) == 2
    assert "1 row of dev with a class that train lacks ('so-so')" in report.notes[0]


def test_bad_rows_of_a_frame_are_left_out() -> None:
    frame = FRAME.assign(text=[*TEXTS[:2], None, " "])
    report = ReadReport()
    task = load_task(table(frame), table(FRAME), skip_bad_rows=True, report=report)
    assert task.left_out == {"train": 2}
    assert "2 × row without a text, left out (first: train DataFrame, row 2)" in report.lines()


def test_texts_without_labels() -> None:
    """They are read as a file of them is: rows without a text are skipped."""
    columns, report = Columns(), ReadReport()
    task = load_task(table((TEXTS, LABELS)), table((TEXTS[:2], LABELS[:2])))
    for value in (["new", "It rains.", None], pd.DataFrame({"text": ["new", "It rains.", None]})):
        found = table_in_memory(value, "unlabelled", columns, labelled=False)
        texts = UnlabelledTexts([found], columns, task, report)
        assert list(texts) == [Example("new")]
    assert report.counts == {
        "unlabelled text that is also in dev, left out": 1,
        "unlabelled row without a text, skipped": 1,
    }
    empty = table_in_memory([""], "unlabelled", columns, labelled=False)
    with pytest.raises(DataError, match="--unlabelled unlabelled list: no usable text"):
        list(UnlabelledTexts([empty], columns, task, report))
