"""Files that ``aang predict`` reads and writes: columns, formats, sizes, what it refuses."""

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from aang.task_types import Decoded
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from aang_core import ReadReport
from tests.support.data import Columns, stream_table
from tests.support.runs import Row, rows_of_file, write_predictions
from tests.support.storage import csv_line
from tests.training.conftest import Aang, Outcome

CLASSES = ["email", "http"]


@pytest.fixture(scope="module")
def classifier(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain transformers folder, which AANG did not train."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path_factory.mktemp("classifier")
    model = AutoModelForSequenceClassification.from_pretrained(
        encoder,
        id2label=dict(enumerate(CLASSES)),
        label2id={label: i for i, label in enumerate(CLASSES)},
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


def records(number: int) -> Iterator[dict[str, Any]]:
    """Rows of very different length, with columns that only their owner understands."""
    for i in range(number):
        text = "Return the parsed message. " * (1 + 7 * i % 11)
        yield {"id": f"r{i}", "text": text, "label": CLASSES[i % 2], "stars": i}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    match path.suffix:
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        case ".parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text().splitlines()]
        case _:
            with path.open(newline="") as file:
                return list(csv.DictReader(file))


@pytest.mark.parametrize("written", [".jsonl", ".csv"])
@pytest.mark.parametrize("given", [".jsonl", ".csv", ".parquet"])
def test_every_column_of_the_input_is_in_the_output(
    aang: Aang, classifier: Path, tmp_path: Path, given: str, written: str
) -> None:
    rows = list(records(9))
    data, out = write(tmp_path / f"in{given}", rows), tmp_path / f"out{written}"
    done = aang("predict", classifier, "--data", data, "--out", out, "--batch-size", 2)
    assert done.status == 0, done.err
    assert done.out == ""
    found = read(out)
    shown = str if ".csv" in (given, written) else (lambda value: value)
    for row, record in zip(rows, found, strict=True):
        assert {name: shown(record[name]) for name in row} == {n: shown(v) for n, v in row.items()}
        assert list(record)[: len(row)] == list(row)
        shares = record.get("probabilities") or {
            label: float(record[f"probability:{label}"]) for label in CLASSES
        }
        assert sum(shares.values()) == pytest.approx(1)
        assert record["predicted"] == max(shares, key=lambda label: shares[label])
    assert {path.name for path in tmp_path.iterdir()} == {data.name, out.name}


def test_sorting_by_length_changes_no_prediction(
    aang: Aang, classifier: Path, tmp_path: Path
) -> None:
    """A window of many batches and texts one by one give the same, in the order of the file."""
    rows = list(records(40))
    data = write(tmp_path / "in.jsonl", rows)
    done = aang("predict", classifier, "--data", data, "--batch-size", 4)
    alone = aang("predict", classifier, "--batch-size", 1, *(row["text"] for row in rows))
    sorted_, single = (
        [json.loads(line) for line in outcome.out.splitlines()] for outcome in (done, alone)
    )
    assert [record["id"] for record in sorted_] == [row["id"] for row in rows]
    for one, other in zip(sorted_, single, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


def test_the_label_alone(aang: Aang, classifier: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "in.jsonl", list(records(5)))
    whole = [json.loads(x) for x in aang("predict", classifier, "--data", data).out.splitlines()]
    done = aang("predict", classifier, "--data", data, "--label-only")
    assert done.out.splitlines() == [record["predicted"] for record in whole]
    done = aang("predict", classifier, "--data", data, "--label-only", "--out", tmp_path / "labels")
    assert (tmp_path / "labels").read_text().splitlines() == [r["predicted"] for r in whole]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Four times the rows take the same memory to read and to write."""

    def peak(number: int, out: str) -> int:
        data = tmp_path / f"{number}.jsonl"
        with data.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in records(number))
        tracemalloc.start()
        try:
            rows = rows_of_file(data, Columns(), ReadReport())
            shares = {"email": 0.25, "http": 0.75}
            found = ((row, Decoded("http", shares)) for row in rows)
            kind: Any = out.partition(".")[2]
            write_predictions(found, tmp_path / out, kind, CLASSES)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    for out in ("out.jsonl", "out.csv"):
        peak(10, out)
        few, many = peak(1_000, out), peak(4_000, out)
        assert many < 1.5 * few, out


def test_json_has_no_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    """Null stands for NaN and infinity, in lists and in predictions too; numbers lack shares."""
    columns = {"scores": [1.5, float("nan")], "more": {"worst": float("-inf")}, "text": "a"}
    found = [(Row(("a", None), columns, ""), Decoded(float("nan")))]
    write_predictions(found, tmp_path / "out.jsonl", "jsonl", [])
    assert read(tmp_path / "out.jsonl") == [
        {"scores": [1.5, None], "more": {"worst": None}, "text": "a", "predicted": None}
    ]


ODD = st.text(st.sampled_from("\r\n\t\"', ;\\#\ufeff\u2028\x85\x0b\x1c\0aNA0"), max_size=6)


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[ODD] * n), min_size=1, max_size=4)))
def test_csv_that_is_written_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    """As many records as rows, and what was in them, for the readers that people use."""
    header = [f"column {i}" for i in range(len(rows[0]))]
    text = "".join(map(csv_line, [header, *rows]))
    path = tmp_path_factory.getbasetemp() / "odd.csv"
    path.write_bytes(text.encode())
    expected = [[cell.replace("\0", "\ufffd") for cell in row] for row in rows]
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == expected
    assert [list(values.values()) for _, values in stream_table(path).rows] == expected
    assert pd.read_csv(path, dtype=str, keep_default_na=False).to_numpy().tolist() == expected
    assert len(pd.read_csv(path)) == len(rows)


def test_line_breaks_anywhere_in_a_table_of_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In texts, ids, classes and names of columns; in a file and on standard output."""
    labels = ["a\rb", "NA", "c\r\nd", 'e,"']
    texts = ["It broke.\nToo small.", "Fits.\r\nGood.", "Loud\rand clear.", " x "]
    rows = [{"i\rd": f"{text}\r{i}", "text": text} for i, text in enumerate(texts)]

    def found() -> Iterator[tuple[Row, Decoded]]:
        for row, label in zip(rows, labels, strict=True):
            yield (
                Row((row["text"], None), row, ""),
                Decoded(label, dict.fromkeys(labels, 0.25)),
            )

    out = tmp_path / "out.csv"
    write_predictions(found(), out, "csv", labels)
    write_predictions(found(), None, "csv", labels)
    assert capsys.readouterr().out.encode() == out.read_bytes()
    shares = {f"probability:{label}": "0.25" for label in labels}
    expected = [
        {**row, "predicted": label, **shares} for row, label in zip(rows, labels, strict=True)
    ]
    assert read(out) == expected
    assert pd.read_csv(out, dtype=str, keep_default_na=False).to_dict("records") == expected
    assert [dict(values) for _, values in stream_table(out).rows] == expected


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [("in.jsonl", "", ["text"]), ("in.csv", "id,text\n", ["id", "text"])],
)
def test_an_input_without_rows(
    aang: Aang, classifier: Path, tmp_path: Path, name: str, content: str, columns: list[str]
) -> None:
    """A header and no rows, so that later steps find their columns; and a note."""
    data, header = tmp_path / name, [*columns, "predicted", *(f"probability:{c}" for c in CLASSES)]
    data.write_text(content)
    done = aang("predict", classifier, "--data", data, "--format", "csv")
    assert done.out.splitlines() == [",".join(header)]
    assert f"note: {data}: holds no text, so nothing was predicted" in done.err
    aang("predict", classifier, "--data", data, "--out", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert (len(table), list(table.columns)) == (0, header)


def refused(aang: Aang, *arguments: object) -> str:
    done: Outcome = aang("predict", *arguments)
    assert done.status == 2, done.out
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"text": ""}, "column 'text' is empty"),
        ({"text": "  \n"}, "column 'text' is empty"),
        ({"text": None}, "column 'text' is null"),
        ({"text": 3}, "which is not text"),
        ({"text": ["a"]}, "which is not text"),
        ({"body": "a"}, "there is no column 'text'"),
        ({"text": "a", "predicted": "b"}, "a column 'predicted' already"),
    ],
)
def test_a_row_that_training_would_refuse(
    aang: Aang, classifier: Path, tmp_path: Path, row: dict[str, Any], says: str
) -> None:
    """The line is named, and no part of an output file is left, nor what was there before."""
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write(data, [{"text": "fine"}] * 40 + [row])
    out.write_text("before")
    said = refused(aang, classifier, "--data", data, "--out", out)
    assert "in.jsonl:41" in said
    assert says in said
    assert out.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl"}


def test_damage_that_is_reached_while_reading(aang: Aang, classifier: Path, tmp_path: Path) -> None:
    data = tmp_path / "in.jsonl"
    good = b'{"text": "fine"}\n' * 3
    for damage, says in (
        (b'{"text": "caf\xe9"}\n', "in.jsonl:4: not UTF-8 text"),
        (b'{"text": "a\0"}\n', "in.jsonl:4: a null byte"),
        (b"{oops\n", "in.jsonl:4: this is not valid JSON"),
        (b"[]\n", "in.jsonl:4: expected a JSON object"),
    ):
        data.write_bytes(good + damage)
        assert says in refused(aang, classifier, "--data", data)


def test_empty_texts_of_the_command_line(aang: Aang, classifier: Path) -> None:
    assert "text 2: is empty" in refused(aang, classifier, "fine", " ")
    assert "text 1: is empty" in refused(aang, classifier, "--pair", "fine", "")


def test_a_table_needs_the_same_columns_in_every_row(
    aang: Aang, classifier: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "b", "id": 1}])
    said = refused(aang, classifier, "--data", data, "--out", tmp_path / "out.csv")
    assert "in.jsonl:2: has a column 'id'" in said
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl"}


@pytest.mark.parametrize("kind", [".jsonl", ".csv"])
def test_half_a_surrogate_pair_anywhere(
    aang: Aang, classifier: Path, tmp_path: Path, kind: str
) -> None:
    """A text cut in the middle of an emoji: JSON Lines give it back, tables cannot hold it."""
    half = "nice \ud83d"
    data = write(tmp_path / "in.jsonl", [{"text": half, "note": {"of": [half]}, half: "\x1b"}])
    out = tmp_path / f"out{kind}"
    done = aang("predict", classifier, "--data", data, "--out", out)
    assert done.status == 0, done.err
    (row,) = read(out)
    if kind == ".jsonl":
        assert (row["text"], row["note"], row[half]) == (half, {"of": [half]}, "\x1b")
    else:
        assert (row["text"], row["nice \ufffd"]) == ("nice \ufffd", "\x1b")
        assert json.loads(row["note"]) == {"of": ["nice \ufffd"]}


def test_tables_lose_nothing_of_objects(tmp_path: Path) -> None:
    """Whichever fields the first rows have."""
    notes: list[object] = [{"a": 1}] * 5000 + [{"b": 2}, {}, [{"c": None}]]
    found = (
        (Row(("x", None), {"text": "x", "note": note}, ""), Decoded("email")) for note in notes
    )
    write_predictions(found, tmp_path / "out.csv", "csv", [])
    assert [json.loads(row["note"]) for row in read(tmp_path / "out.csv")] == notes


def test_output_that_cannot_be_written_is_refused_first(
    aang: Aang, classifier: Path, tmp_path: Path
) -> None:
    assert "there is no folder" in refused(aang, classifier, "a", "--out", tmp_path / "x" / "y.csv")
    assert "is a folder" in refused(aang, classifier, "a", "--out", tmp_path, "--format", "csv")
    assert "end the name in .jsonl" in refused(aang, classifier, "a", "--out", tmp_path / "out.xls")
    assert "leave --format out" in refused(aang, classifier, "a", "--label-only", "--format", "csv")


def test_a_path_that_is_no_folder_does_not_ask_the_hub(
    aang: Aang, classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a misspelled folder; every request would go through this client."""
    import huggingface_hub

    def request() -> None:
        raise AssertionError("asked the hub")

    huggingface_hub.set_client_factory(request)  # type: ignore[arg-type]
    try:
        monkeypatch.chdir(tmp_path)
        Path("runs").mkdir()
        Path("file").write_text("")
        Path("link").symlink_to("nowhere")
        for path in ("file", "link", "/dev/null"):
            assert "is not a folder" in refused(aang, path, "a")
        for path in ("runs/typo", "typo", "/a/b", "a/b/c"):
            assert "there is no such folder; give" in refused(aang, path, "a")
        assert "with its owner, as OWNER/NAME" in refused(aang, "roberta-large-mnli", "a")
        assert "as a name on the hub it cannot be loaded" in refused(aang, "some/model", "a")
    finally:
        from huggingface_hub.utils._http import default_client_factory

        huggingface_hub.set_client_factory(default_client_factory)


@pytest.fixture
def pairs_run(aang: Aang, train_options: list[object], tmp_path: Path) -> Path:
    """A run of one step on pairs of texts."""
    rows = [{"a": f"first {i}", "b": f"second {i}", "label": CLASSES[i % 2]} for i in range(24)]
    train, run = write(tmp_path / "pairs.jsonl", rows), tmp_path / "run"
    options = ["--train", train, "--dev", train, "--test", train, "--steps", 1, "--quiet"]
    options += ["--text", "a", "--text-pair", "b", "--weighter", "single-task", "--out", run]
    done = aang("train", *train_options, *options)
    assert done.status == 0, done.err
    return run


def test_pairs(
    aang: Aang,
    pairs_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the command line, from standard input and from a file, all the same."""
    import io
    import sys
    from types import SimpleNamespace

    given = [("first 0", "second 0"), ("first 1", "second 1")]
    flags = [part for pair in given for part in ("--pair", *pair)]
    done = aang("predict", pairs_run, *flags)
    assert done.status == 0, done.err
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(record["text"], record["text_pair"]) for record in found] == given
    shares = [record["probabilities"] for record in found]

    done = aang("predict", pairs_run, "--data", tmp_path / "pairs.jsonl")
    from_file = [json.loads(line) for line in done.out.splitlines()]
    assert [record["b"] for record in from_file[:2]] == ["second 0", "second 1"]
    for one, other in zip(shares, from_file, strict=False):
        assert one == pytest.approx(other["probabilities"], abs=1e-5)

    lines = "".join("\t".join(pair) + "\n" for pair in given).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    done = aang("predict", pairs_run, "--data", "-")
    assert [json.loads(x)["predicted"] for x in done.out.splitlines()] == [
        record["predicted"] for record in found
    ]

    said = refused(aang, pairs_run, "one text")
    assert "was trained on pairs of texts" in said
    single = write(tmp_path / "single.jsonl", [{"a": "one text"}])
    assert "there is no column 'b'" in refused(aang, pairs_run, "--data", single)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"one text\n")))
    assert "standard input:1: 1 texts" in refused(aang, pairs_run, "--data", "-")


def test_pairs_for_a_classifier_of_single_texts(aang: Aang, whole: Path, tmp_path: Path) -> None:
    assert "was trained on single texts" in refused(aang, whole, "--pair", "a", "b")
    data = write(tmp_path / "in.jsonl", [{"text": "a", "b": "c"}])
    said = refused(aang, whole, "--data", data, "--text-pair", "b")
    assert "was trained on single texts" in said


def test_evaluate_takes_any_classifier_and_any_columns(
    aang: Aang, classifier: Path, tmp_path: Path
) -> None:
    """What scikit-learn says about what predict predicts."""
    from sklearn.metrics import classification_report

    rows = [{"body": row["text"], "package": row["label"]} for row in records(30)]
    data = write(tmp_path / "in.csv", rows)
    columns = ("--data", data, "--text", "body", "--label", "package")
    done = aang("evaluate", classifier, *columns, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    done = aang("predict", classifier, "--data", data, "--text", "body", "--label-only")
    expected: Any = classification_report(
        [row["package"] for row in rows],
        done.out.splitlines(),
        output_dict=True,
        zero_division=0.0,
    )
    assert found["scores"]["accuracy"] == pytest.approx(expected["accuracy"])
    for label in CLASSES:
        one, other = found["classes"][label], expected[label]
        assert one["examples"] == other["support"] == 15
        assert one["f1"] == pytest.approx(other["f1-score"])
        assert one["recall"] == pytest.approx(other["recall"])
        assert one["precision"] == pytest.approx(other["precision"])
    shown = aang("evaluate", classifier, *columns).out.splitlines()
    assert shown[-3].split() == ["class", "precision", "recall", "f1", "examples"]
    assert [line.split()[0] for line in shown[-2:]] == CLASSES
    done = aang("evaluate", classifier, "--data", data, "--text", "body", "--label", "oops")
    assert done.status == 2
    assert "Name the right one with --label" in done.err
