"""What each kind of end task reads from a table, and how the kind is chosen."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from transformers import BertConfig

from aang_core import (
    AangError,
    DataError,
    Example,
    ReadReport,
    Registry,
    TaggedWord,
    load_plugins,
)
from tests.support.data import (
    Columns,
    LabelledTask,
    load_dataset_task,
    load_task,
    table_in_memory,
    task_type_of_model,
)


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(labels: Sequence[object]) -> list[dict[str, object]]:
    return [{"text": f"text {i}", "label": label} for i, label in enumerate(labels)]


def read(path: Path, labels: Sequence[object], name: str | None = None) -> LabelledTask:
    return load_task(write(path / "a.jsonl", rows_of(labels)), task_type=name, dev_fraction=0.5)


@pytest.mark.parametrize(
    ("labels", "chosen", "said"),
    [
        (["a", "b"] * 4, "single-label", None),
        ([1, 2] * 4, "single-label", None),
        ([1.0, 2.0] * 4, "single-label", None),
        (["1.5", "x"] * 4, "single-label", None),
        ([[], ["a", "b"], ["a"], ["b"]] * 3, "multi-label", "lists of classes"),
        ([1.5, 2, 3, 4] * 3, "regression", "numbers that are not whole"),
        (["1.5", "2", "3", "4"] * 3, "single-label", None),
        (["[x]", "[y]"] * 4, "single-label", None),
        ([[{"start": 0, "end": 4, "label": "T"}], []] * 4, "token-labels", "lists of spans"),
        ([[[0, 4, "T"]], []] * 4, "token-labels", "lists of spans"),
        (["[[0, 4, 'T']]", "[]"] * 4, "token-labels", "lists of spans"),
        (["['a', 'b']", '["a"]', "[]"] * 3, "multi-label", "lists of classes, written as text"),
    ],
)
def test_the_kind_is_chosen_from_the_labels_in_one_line(
    tmp_path: Path, labels: Sequence[object], chosen: str, said: str | None
) -> None:
    report = ReadReport()
    task = load_task(write(tmp_path / "a.jsonl", rows_of(labels)), dev_fraction=0.5, report=report)
    assert task.task_type.name == chosen
    notes = [note for note in report.notes if note.startswith("task type")]
    assert [said in note and "--task-type" in note for note in notes] == [True] * (said is not None)


def test_lists_of_tokens_and_tags(tmp_path: Path) -> None:
    """Their text has a space between tokens, and no token loses its place."""
    rows = [
        {"tokens": [" in", "New York", ","], "tags": ["O", "B-LOC", "O"]},
        {"tokens": ["Ada"], "tags": ["B-PER"]},
    ]
    report = ReadReport()
    path = write(tmp_path / "a.jsonl", rows * 2)
    task = load_task(path, path, text="tokens", label="tags", report=report)
    assert task.task_type.name == "token-labels"
    assert task.labels == ("B-LOC", "B-PER", "O")
    first = task.train[0]
    assert first.text == "in New\u00a0York ,"
    assert first.label == (
        TaggedWord(0, 2, "O"),
        TaggedWord(3, 11, "B-LOC"),
        TaggedWord(12, 13, "O"),
    )
    assert sum(report.counts[e] for e in report.counts if "token with a space" in e) == 4


def test_spans_become_tags_of_words(tmp_path: Path) -> None:
    """A span begins with B- and goes on with I-; half a word is extended to the whole."""
    text = "Ada Lovelace, Charles B."
    spans = [{"start": 0, "end": 12, "label": "PER"}, {"start": 14, "end": 18, "label": "PER"}]
    path = write(tmp_path / "a.jsonl", [{"text": text, "label": spans}] * 4)
    report = ReadReport()
    task = load_task(path, path, report=report)
    words = task.train[0].label
    assert isinstance(words, tuple)
    assert [(text[w.start : w.end], w.tag) for w in words if isinstance(w, TaggedWord)] == [
        *(("Ada", "B-PER"), ("Lovelace", "I-PER"), (",", "O")),
        *(("Charles", "B-PER"), ("B", "O"), (".", "O")),
    ]
    assert any("within a word" in event for event in report.counts)


def test_a_word_that_two_spans_share_is_of_the_first(tmp_path: Path) -> None:
    """The second span begins with the next word."""
    spans = [[0, 3, "A"], [3, 12, "B"]]
    path = write(tmp_path / "a.jsonl", [{"text": "sunshine day off", "label": spans}] * 4)
    words = load_task(path, path).train[0].label
    assert isinstance(words, tuple)
    assert [w.tag for w in words if isinstance(w, TaggedWord)] == ["B-A", "B-B", "O"]


def test_spans_without_a_word_are_counted(tmp_path: Path) -> None:
    """One is over nothing but space, the word of the other belongs to the span before."""
    spans = [[0, 3, "A"], [3, 8, "B"], [8, 9, "A"]]
    path = write(tmp_path / "a.jsonl", [{"text": "sunshine day", "label": spans}] * 4)
    report = ReadReport()
    words = load_task(path, path, report=report).train[0].label
    assert isinstance(words, tuple)
    assert [w.tag for w in words if isinstance(w, TaggedWord)] == ["B-A", "O"]
    # Two spans in each of four rows, read for training and for dev.
    assert sum(n for event, n in report.counts.items() if "without a word" in event) == 16


@pytest.mark.parametrize(
    ("separated", "mark"), [("a|b", "|"), ("a; b", ";"), ("a,b", ",")], ids=lambda value: value
)
def test_text_with_a_separator_is_a_set_of_classes(
    tmp_path: Path, separated: str, mark: str
) -> None:
    """If the user says that the task is multi-label; otherwise it is the name of one class."""
    labels = [separated, "b", "", "a"] * 3
    task = read(tmp_path, labels, "multi-label")
    assert task.labels == ("a", "b")
    assert {e.label for e in (*task.train, *task.dev)} == {("a", "b"), ("b",), (), ("a",)}
    alone = read(tmp_path, [label or "none" for label in labels])
    assert separated in alone.labels


@pytest.mark.parametrize(
    ("labels", "name", "said"),
    [
        (["a|b", "b;c", "a"] * 3, "multi-label", "split at |, so ; in them is part"),
        (["a/b", "b", "a"] * 3, "multi-label", "no label has |, ; or , in it"),
        (["B-A O", "I-A C", "O B-C"] * 3, "token-labels", "'C' has no prefix, as B-A has"),
    ],
)
def test_labels_that_may_be_meant_otherwise_are_told(
    tmp_path: Path, labels: list[str], name: str, said: str
) -> None:
    path = write(tmp_path / "a.jsonl", [{"text": "two words", "label": label} for label in labels])
    report = ReadReport()
    load_task(path, path, report=report, task_type=name)
    assert said in " ".join(report.lines())


@pytest.mark.parametrize(
    ("name", "labels", "said"),
    [
        (None, [["a"], "b"], ["a.jsonl:2", "'b'", "lists", '["a", "b"]']),
        (None, [["a"], None], ["a.jsonl:2", "null", "[]"]),
        ("multi-label", [3, 4], ["a.jsonl:1", "neither a list", "a|b"]),
        (None, [["a"], ["a"]], ["a.jsonl", "'a'", "two classes"]),
        (None, [[], []], ["a.jsonl", "no example has a class"]),
        ("regression", [1, "high"], ["a.jsonl:2", "'high'", "not a finite number"]),
        ("regression", [1, None], ["a.jsonl:2", "null"]),
        ("regression", [1, True], ["a.jsonl:2", "True"]),
        ("regression", [1, float("inf")], ["a.jsonl:2", "inf"]),
        ("regression", [2, 2.0], ["a.jsonl", "every example has the number 2"]),
        ("regression", [1, 1e300], ["a.jsonl", "from 1 to 1e+300", "another unit"]),
        (
            "regression",
            [1e9, 1e9 + 5],
            ["a.jsonl", "to 1000000005", "fixed number"],
        ),
        ("regression", [0, 1e-300], ["a.jsonl", "from 0 to 1e-300", "another unit"]),
        (None, ["a", 1.5], ["a.jsonl:2", "1.5", "score", "--task-type regression"]),
        ("single-label", [["a"], "b"], ["a.jsonl:1", "--task-type"]),
        ("token-labels", ["O O", "O"], ["a.jsonl:2", "1 tags", "2 tokens"]),
        ("token-labels", ["O O", 3], ["a.jsonl:2", "not a list"]),
        (None, ["1", "1.0"], ["a.jsonl: column 'label'", "'1' and '1.0'"]),
        (None, [["x", "1.00"], ["1"]], ["a.jsonl: column 'label'", "'1.00' and '1'"]),
        (None, ["['a']", "['a', b]"], ["a.jsonl:2", "['a', b]", "looks like a list"]),
        (None, ["['a']", "['a' 'b']"], ["a.jsonl:2", "['a' 'b']", "looks like a list"]),
        (None, ["['a' 'b']", "['a']"], ["a.jsonl:1", "['a' 'b']", "looks like a list"]),
        (None, ["[1 0 1]", "[0 0 1]"], ["a.jsonl:1", "[1 0 1]", "--task-type single-label"]),
        (None, ["['a']", "b"], ["a.jsonl:2", "'b'", "lists"]),
        (None, ["['a']", " "], ["a.jsonl:2", "is empty", "[]"]),
        ("multi-label", ["a|b", "['a', 'b'"], ["a.jsonl:2", "looks like a list"]),
        ("token-labels", ["['O', 'O']", "['O' 'O']"], ["a.jsonl:2", "looks like a list"]),
        ("regression", [1, "1_000"], ["a.jsonl:2", "'1_000'", "not a finite number"]),
        (None, [[[0, 3]], []], ["a.jsonl:1", "[0, 3]", "not a span"]),
        (None, [[[0, 99, "T"]], []], ["a.jsonl:1", "0 to 99", "6 characters"]),
        (None, [[[0, 4, "T"], [2, 6, "U"]], []], ["a.jsonl:1", "overlap", "character 2"]),
    ],
)
def test_a_label_that_cannot_be_read_is_named(
    tmp_path: Path, name: str | None, labels: Sequence[object], said: Sequence[str]
) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, labels, name)
    for part in said:
        assert part in str(caught.value)


def test_tags_and_tokens_of_different_length(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"text": ["a", "b"], "label": ["O"]}])
    with pytest.raises(DataError, match=r"a\.jsonl:1: column 'label' holds 1 tags, .* 2 tokens"):
        load_task(path, path)


def test_what_dev_has_and_train_lacks(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", rows_of([["cat"], ["dog", "cat"]]))
    dev = write(tmp_path / "b.jsonl", rows_of([["cat", "owl"], ["dog"]]))
    report = ReadReport()
    task = load_task(train, dev, report=report)
    assert task.task_type.classes == ("cat", "dog", "owl")
    assert report.notes[-1] == (
        "1 row of dev with a class that train lacks ('owl'), counted as missed; the loss on dev "
        "leaves them out"
    )


def test_ids_of_classes_in_lists_become_their_names(tmp_path: Path) -> None:
    features = Features(
        {"text": List(Value("string")), "label": List(ClassLabel(names=["O", "X"]))}
    )
    part = Dataset.from_dict({"text": [["a", "b"]] * 3, "label": [[0, 1]] * 3}, features)
    DatasetDict({"train": part, "validation": part}).save_to_disk(tmp_path / "saved")
    part.to_parquet(tmp_path / "train.parquet")
    task = load_dataset_task(str(tmp_path), dev_fraction=0.4)
    assert task.labels == ("O", "X")
    assert task.train[0] == Example("a b", label=(TaggedWord(0, 1, "O"), TaggedWord(2, 3, "X")))


def test_a_split_of_numbers_has_some_of_every_size(tmp_path: Path) -> None:
    task = read(tmp_path, [i + 0.5 for i in range(100)])
    assert [sum(int(float(str(e.label))) // 20 == part for e in task.dev) for part in range(5)] == [
        10
    ] * 5


PLACES = [[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]]
AT_PLACES = [("0", "2"), ("1",), ("0", "1"), ()]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (PLACES, None),
        ([[bool(mark) for mark in row] for row in PLACES], None),
        ([[float(mark) for mark in row] for row in PLACES], "multi-label"),
        ([json.dumps(row) for row in PLACES], None),
        (["|".join(map(str, row)) for row in PLACES], "multi-label"),
    ],
)
def test_zeros_and_ones_mark_classes_by_their_place(
    tmp_path: Path, labels: Sequence[object], name: str | None
) -> None:
    """The usual form elsewhere; as names, nearly every text would have the classes 0 and 1."""
    path, report = write(tmp_path / "a.jsonl", rows_of(labels)), ReadReport()
    task = load_task(path, path, task_type=name, report=report)
    assert task.labels == ("0", "1", "2")
    assert [e.label for e in task.train] == [e.label for e in task.dev] == AT_PLACES
    assert any(
        "by their place the classes '0', '1', '2'; --label-names" in note for note in report.notes
    )


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[1, 0, 1], [1], [0, 1]], ("0", "1")),
        ([[1, 2], [0, 1], [0, 2]], ("0", "1", "2")),
        ([["1", "0"], ["0", "1"], ["1", "x"]], ("0", "1", "x")),
        ([["1", "0"], ["0", "1"], ["1", "1"]], ("0", "1")),
    ],
)
def test_other_lists_of_zeros_and_ones_are_names(
    tmp_path: Path, labels: Sequence[object], classes: tuple[str, ...]
) -> None:
    path, report = write(tmp_path / "a.jsonl", rows_of(labels)), ReadReport()
    task = load_task(path, path, report=report)
    assert task.labels == classes
    assert task.train[0].label == tuple(sorted(set(map(str, labels[0]))))  # type: ignore[call-overload]
    assert not any("place" in note for note in report.notes)
    repeated = sum(len(set(row)) < len(row) for row in labels)  # type: ignore[arg-type,call-overload]
    assert report.counts["label that names a class more than once"] == 2 * repeated


@pytest.mark.parametrize("odd", [[1, 0, 2], [1, 0], []])
def test_one_label_does_not_turn_places_into_names(tmp_path: Path, odd: list[int]) -> None:
    """Most labels are zeros and ones, and no list names a class twice."""
    path = write(tmp_path / "a.jsonl", rows_of([[1, 1, 0], [0, 1, 0], [0, 0, 1], odd]))
    with pytest.raises(DataError, match=r"a\.jsonl:4: .* are 3 zeros and ones"):
        load_task(path, path)


@pytest.mark.parametrize("cells", [["0,5", "1,5", "2"], ["1%", "3.5%", "2%"]])
def test_numbers_that_are_all_written_differently_are_noted(
    tmp_path: Path, cells: list[str]
) -> None:
    path, report = csv_of(tmp_path / "a.csv", cells), ReadReport()
    load_task(path, path, report=report)
    assert any("read as names of classes; write them as 2.5" in note for note in report.notes)


def test_quotes_around_a_label_are_noted(tmp_path: Path) -> None:
    path, report = write(tmp_path / "a.jsonl", rows_of(['"a"', "a", "b"])), ReadReport()
    load_task(path, path, report=report)
    assert any("label in quotes" in line for line in report.lines())


def test_classes_keep_their_places(tmp_path: Path) -> None:
    """In their order, whether they occur or not; and what train decides holds for dev."""
    marks = [[0] * 12 for _ in range(3)]
    marks[0][10] = marks[1][2] = 1
    train = write(tmp_path / "a.jsonl", rows_of(marks))
    dev = write(tmp_path / "b.jsonl", rows_of([marks[0], [0] * 11]))
    with pytest.raises(DataError, match=r"b\.jsonl:2: .* are 12 zeros and ones"):
        load_task(train, dev)
    dev = write(tmp_path / "b.jsonl", rows_of([marks[1], [0] * 11 + [3]]))
    with pytest.raises(DataError, match=r"b\.jsonl:2: .* Write a 0 or a 1"):
        load_task(train, dev)
    report = ReadReport()
    task = load_task(train, write(tmp_path / "b.jsonl", rows_of([[1] * 12])), report=report)
    assert task.labels == tuple(map(str, range(12)))
    assert task.train[0].label == ("10",)
    assert any("no example has the class '0', '1', '3'" in note for note in report.notes)


def test_places_may_have_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", rows_of(PLACES))
    names, report = ("sport", "news", "money"), ReadReport()
    task = load_task(path, path, label_names=names, report=report)
    assert task.labels == names
    assert task.train[0].label == ("money", "sport")
    assert any("the classes 'sport', 'news', 'money'" in note for note in report.notes)
    with pytest.raises(DataError, match=r"--label-names has 2 names, .* 3 places"):
        load_task(path, path, label_names=names[:2])
    other = write(tmp_path / "b.jsonl", rows_of([["a"], ["b"]]))
    with pytest.raises(DataError, match=r"b\.jsonl: --label-names names the places"):
        load_task(other, other, label_names=names)


def csv_of(path: Path, labels: Sequence[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [("text", "label"), *((f"text {i}", n) for i, n in enumerate(labels))]
        )
    return path


def test_lists_that_were_written_into_cells(tmp_path: Path) -> None:
    """In the notation of pandas and of JSON; commas and quotes within a name are part of it."""
    cells = ["['sport', 'news']", "['news']", "[]", '["sport", "it\'s, \\u00e9"]', " [ 'news' ] "]
    path = csv_of(tmp_path / "a.csv", cells)
    for name in (None, "multi-label"):
        task = load_task(path, path, task_type=name)  # type: ignore[arg-type]
        assert [e.label for e in task.train] == [
            *(("news", "sport"), ("news",), (), ("it's, é", "sport"), ("news",))
        ]


def test_tokens_tags_and_spans_that_were_written_into_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n\"['In', 'New York']\",\"['O', 'B-LOC']\"\n")
    expected = (TaggedWord(0, 2, "O"), TaggedWord(3, 11, "B-LOC"))
    task = load_task(path, path)
    assert task.train[0] == Example("In New\u00a0York", label=expected)
    path.write_text('text,label\n"In Oslo","[(3, 7, \'LOC\')]"\n[so],[]\n')
    task = load_task(path, path)
    assert task.train[0].label == (TaggedWord(0, 2, "O"), TaggedWord(3, 7, "B-LOC"))
    assert task.train[1].text == "[so]"
    path.write_text("text,label\n[ 12 ],O B O\n\"['a', 'b']\",\"O\"\n")
    with pytest.raises(DataError, match=r"a\.csv:3: .* holds 1 tags, .* 2 tokens"):
        load_task(path, path, task_type="token-labels")


@pytest.mark.parametrize(
    "spoilt", ["NA", "nan", "inf", "n/a", "", "3,5", "5.5%", "1,001.5", "None", "unknown"]
)
@pytest.mark.parametrize("name", [None, "regression"])
def test_one_cell_does_not_turn_numbers_into_names(
    tmp_path: Path, spoilt: str, name: str | None
) -> None:
    """The error names the line, and what to do whichever of the two they are."""
    path = csv_of(tmp_path / "a.csv", ["4.5", "5.0", spoilt, "1"])
    way_out = "train with --task-type single-label" if spoilt else "--skip-bad-rows"
    with pytest.raises(DataError, match=rf"a\.csv:4: .*remove the .*{way_out}"):
        load_task(path, path, task_type=name)
    named = csv_of(tmp_path / "b.csv", ["4.5", "5.0", spoilt or "-", "1"])
    assert "5" in load_task(named, named, task_type="single-label").labels


def test_names_that_stand_for_missing_values_are_noted(tmp_path: Path) -> None:
    """Beside whole numbers or names they may be classes, and may be holes."""
    path, report = csv_of(tmp_path / "a.csv", ["1", "NA", "2", "NA"]), ReadReport()
    assert load_task(path, path, report=report).labels == ("1", "2", "NA")
    (line,) = [line for line in report.lines() if "missing" in line]
    assert line.startswith("4 × label 'NA'")
    assert line.endswith("a.csv:3)")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["3.10", "3.9", "3.1", "3.9"], True),
        (["4.5", "NA", "5.0", "1"], True),
        (["3.9", "3.10", "3.10.1", "3.9"], False),
    ],
)
def test_text_of_typed_tables_is_a_name_even_if_it_spells_a_number(
    tmp_path: Path, labels: Sequence[str], said: bool
) -> None:
    """Version 3.10 is not version 3.1. The cells of a CSV file have no types."""
    path, report = write(tmp_path / "a.jsonl", rows_of(labels)), ReadReport()
    task = load_task(path, path, report=report)
    assert task.task_type.name == "single-label"
    assert [e.label for e in task.train] == [label.removesuffix(".0") for label in labels]
    assert any("--task-type regression" in note for note in report.notes) == said
    if labels[0] == "3.10":
        assert load_task(path, path, task_type="regression").train[0].label == 3.1
        plain = csv_of(tmp_path / "a.csv", labels)
        assert load_task(plain, plain).task_type.name == "regression"


def test_infinity_among_whole_numbers_of_a_frame_is_no_score() -> None:
    """It is neither a class nor a number that could be learned."""
    columns = {"text": ["a", "b", "c"], "label": [1.0, 2.0, float("inf")]}
    table = table_in_memory(columns, "train", Columns())
    with pytest.raises(DataError, match=r"row 2: column 'label' holds inf, which is no class\."):
        load_task(table, table)


def test_a_list_as_the_name_of_one_class_is_noted(tmp_path: Path) -> None:
    path, report = csv_of(tmp_path / "a.csv", ["['a']", "b"]), ReadReport()
    task = load_task(path, path, task_type="single-label", report=report)
    assert task.labels == ("['a']", "b")
    assert any("looks like a list" in event for event in report.counts)


def test_a_few_texts_of_different_classes_can_be_split(tmp_path: Path) -> None:
    """Although no two have the same rarest class; the only text of a class stays in train."""
    path = write(tmp_path / "a.jsonl", rows_of(PLACES))
    for seed in range(8):
        report = ReadReport()
        task = load_task(path, seed=seed, report=report)
        assert (len(task.train), len(task.dev)) == (3, 1)
        assert task.labels == ("0", "1", "2")
        assert task.train[0].label == ("0", "2")
        assert report.counts["class with a single example, so absent from dev"] == 1


@pytest.fixture(scope="module")
def bare() -> Registry:
    """Without the plug-in of the other kinds."""
    return load_plugins(disable=["aang-plugin-task-types"]).registry


@pytest.mark.parametrize(
    ("labels", "name", "holds"),
    [
        ([["a"], ["a", "b"]], None, "holds lists"),
        (["['a']", "[]"], None, "holds lists"),
        ([1.5, 2, 3], None, "holds numbers that are not whole"),
        (["a", "b"], "regression", "no kind of end task regression"),
    ],
)
def test_a_kind_that_is_not_there_says_which_plugin_has_it_and_why(
    tmp_path: Path, bare: Registry, labels: Sequence[object], name: str | None, holds: str
) -> None:
    """Whether it is asked for, or the labels are hardly names of classes."""
    path = write(tmp_path / "a.jsonl", rows_of(labels))
    with pytest.raises(AangError, match=rf"{holds}.*aang-plugin-task-types.* is disabled"):
        load_task(path, path, task_type=name, registry=bare)


def test_names_are_classes_whatever_is_installed(tmp_path: Path, bare: Registry) -> None:
    for labels in (["a", "b"], [1, 2], ["1.5", "x", "y"]):
        path = write(tmp_path / "a.jsonl", rows_of(labels))
        assert load_task(path, path, registry=bare).task_type.name == "single-label"
    with pytest.raises(AangError, match=r"ordinl.*it is one of: single-label"):
        load_task(path, path, task_type="ordinl", registry=bare)


def test_a_model_of_a_kind_that_is_not_there(bare: Registry) -> None:
    """Its numbers would be taken for a class."""
    config = BertConfig(num_labels=1, problem_type="regression")
    assert task_type_of_model(config).name == "regression"
    with pytest.raises(AangError, match=r"aang-plugin-task-types, .* is disabled"):
        task_type_of_model(config, bare)
    assert task_type_of_model(BertConfig(num_labels=2), bare).name == "single-label"
