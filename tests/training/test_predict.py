"""``aang predict``: what a saved classifier makes of new texts."""

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import pipeline

from aang_core.cli import main
from tests.support.runs import Origins, cell, plain
from tests.training.conftest import Aang


@pytest.fixture(scope="module")
def trained(train_options: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    options = ["train", *train_options, "--weighter", "single-task", "--quiet", "--out", folder]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AANG_CACHE", str(folder.parent / "cache"))
        with pytest.raises(SystemExit) as end:
            main([str(option) for option in options])
    assert not end.value.code
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A run of the test's own."""
    return shutil.copytree(trained, tmp_path / "run")


TEXTS = ["x", "Return the parsed message.", "A window that is drawn on the screen " * 20]


def test_it_says_what_the_pipeline_says(aang: Aang, run: Path) -> None:
    """The same labels and probabilities as transformers' own pipeline, for any batch."""
    done = aang("predict", run, "--batch-size", 2, *TEXTS)
    assert done.status == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["text"] for record in records] == TEXTS
    classify = pipeline("text-classification", model=str(run / "model"), top_k=None)
    for record in records:
        expected = {
            c["label"]: c["score"]
            for c in classify(record["text"], truncation=True, max_length=48)[0]
        }
        assert record["probabilities"] == pytest.approx(expected, abs=1e-5)
        assert sum(record["probabilities"].values()) == pytest.approx(1)
        assert record["predicted"] == max(expected, key=lambda label: expected[label])


def test_a_file_and_a_model_folder(aang: Aang, run: Path, task_files: Path) -> None:
    """In file order, as CSV, with the labels of the file beside the predicted ones."""
    done = aang("predict", run / "model", "--data", task_files / "test.jsonl", "--format", "csv")
    assert done.status == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    lines = (task_files / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert [row["text"] for row in rows] == [json.loads(line)["text"] for line in lines]
    assert [row["label"] for row in rows] == [json.loads(line)["label"] for line in lines]
    labels = {name.partition(":")[2] for name in rows[0] if name.startswith("probability:")}
    assert "email" in labels
    for row in rows:
        shares = {label: float(row[f"probability:{label}"]) for label in labels}
        assert row["predicted"] == max(shares, key=lambda label: shares[label])


def test_texts_are_cut_to_the_positions_of_the_encoder(
    aang: Aang, encoder: Path, train_options: list[object], tmp_path: Path
) -> None:
    """As in training, where neither the tokenizer nor ``--max-length`` says so."""
    folder, run = tmp_path / "encoder", tmp_path / "run"
    shutil.copytree(encoder, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    del settings["model_max_length"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    asked = ("--model", folder, "--max-length", 512, "--weighter", "single-task", "--steps", 1)
    done = aang("train", *train_options, *asked, "--out", run)
    assert done.status == 0, done.err
    positions = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    assert f"cut to {positions} " in done.err
    assert f"--max-length 512 is more than the encoder's {positions} tokens" in done.err
    assert f"Texts are cut to {positions} tokens" in (run / "model" / "README.md").read_text()
    text = "the event loop " * 100
    classify = pipeline("text-classification", model=str(run / "model"))
    assert classify(text, truncation=True)[0]["label"]
    (tmp_path / "long.jsonl").write_text(json.dumps({"text": text, "label": "email"}) + "\n")
    for source in (run, run / "model"):
        done = aang("predict", source, text, text + text)
        assert done.status == 0, done.err
        assert f"2 × text longer than {positions} tokens, cut (first: 'the event" in done.err
        shares = [json.loads(line)["probabilities"] for line in done.out.splitlines()]
        assert shares[0] == pytest.approx(shares[1])
        done = aang("evaluate", source, "--data", tmp_path / "long.jsonl")
        assert done.status == 0, done.err


class Typed(io.RawIOBase):
    """Standard input that gives the next line once the one before has been answered."""

    def __init__(self, lines: list[str], answered: Callable[[], int]) -> None:
        self._lines = iter(lines)
        self._given = 0
        self._answered = answered

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._answered() == self._given
        line = next(self._lines, "").encode()
        self._given += bool(line)
        buffer[: len(line)] = line
        return len(line)


def test_a_line_is_answered_before_the_next_is_read(
    aang: Aang, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[str] = []
    write = sys.stdout.write

    def recorded(text: str) -> int:
        answers.extend(text.splitlines())
        return write(text)

    typed = Typed(["first line\n", "second line\n"], lambda: len(answers))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(typed)))
    monkeypatch.setattr(sys.stdout, "write", recorded)
    done = aang("predict", run, "--data", "-", "--batch-size", 1)
    assert done.status == 0, done.err
    assert [json.loads(answer)["text"] for answer in answers] == ["first line", "second line"]


@pytest.mark.full
def test_lines_from_standard_input_are_answered_as_they_come(run: Path) -> None:
    """The first answer is there before the second line has been written."""
    command = [sys.executable, "-m", "aang_core", "predict", str(run), "--data", "-"]
    process = subprocess.Popen(
        [*command, "--batch-size", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for text in ("first line", "second line"):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["text"] == text
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def test_bad_input(aang: Aang, run: Path, tmp_path: Path) -> None:
    assert "give either texts" in aang("predict", run).err
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"body": "text"}\n')
    done = aang("predict", run, "--data", bad)
    assert done.status == 2
    assert "bad.jsonl:1" in done.err
    assert "--text" in done.err
    assert aang("predict", tmp_path, "text").status == 2
    bad.write_text('{"text": 3}\n')
    assert "which is not text" in aang("predict", run, "--data", bad).err


def test_the_model_card(run: Path) -> None:
    """A metadata header, classes, scores, and the versions it was made with."""
    import yaml

    text = (run / "model" / "README.md").read_text(encoding="utf-8")
    _, header, body = text.split("---\n", 2)
    metadata = yaml.safe_load(header)
    result = json.loads((run / "result.json").read_text())
    entries = metadata["model-index"][0]["results"]
    assert [entry["dataset"]["split"] for entry in entries] == ["test", "validation"]
    for entry, part in zip(entries, ("test", "dev"), strict=True):
        score = pytest.approx(result["metric"][part], abs=1e-4)
        assert entry["metrics"][0] == {"type": "f1", "name": "macro-f1", "value": score}
        assert {metric["name"] for metric in entry["metrics"]} == {
            "macro-f1",
            "micro-f1",
            "accuracy",
        }
    assert metadata["pipeline_tag"] == "text-classification"
    for words in (
        "“email”",
        "aang-core",
        torch.__version__,
        "majority class",
        "pipeline(",
    ):
        assert words in body
    assert "What was learned" not in body


def test_a_model_that_has_changed_does_not_predict(
    aang: Aang, run: Path, task_files: Path, tmp_path: Path
) -> None:
    """A copy that is damaged or cut off would answer differently, and not say so."""
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "model" / "README.md").write_text("my own card")
    assert aang("predict", copy, "a text").status == 0
    weights = copy / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for named in (copy, copy / "model"):
        done = aang("predict", named, "a text")
        assert done.status == 2
        assert "the checksum of model.safetensors is wrong" in done.err
    done = aang("evaluate", copy, "--data", task_files / "test.jsonl")
    assert "is not the model that the run has saved" in done.err
    (copy / "model.json").unlink()
    assert aang("predict", copy, "a text").status == 0


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("language: [en, no, nb]", ("en", "no", "nb")),  # YAML reads no as false
        ("language: no", ("no",)),
        ("language: en", ("en",)),
        ("language: 5", ()),
        ("description: a model: for text", ()),
        ("a:\tb\n\tc: d", ()),
        ("1: x", ()),
        ("- a list", ()),
    ],
)
def test_whatever_the_card_of_an_encoder_says(
    header: str, languages: tuple[str, ...], tmp_path: Path
) -> None:
    """Its header only adds to the card of the model, so a bad one stops nothing."""
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\nAn encoder.\n", encoding="utf-8")
    assert Origins.of_options({"model": str(tmp_path)}).languages == languages


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b <i>", r"a\_b &lt;i&gt;"),
        ("see https://example.com", "`see https://example.com`"),
        ("www.example.com", "`www.example.com`"),
        ("@somebody", "`@somebody`"),
        ("$x^2$", "`$x^2$`"),
        (":tada:", "`:tada:`"),
        ("` @`` ", "``` ` @`` ```"),
    ],
)
def test_nothing_in_a_card_acts_without_markup(text: str, shown: str) -> None:
    """Addresses, mentions, formulas and emoji by name are shown as code."""
    assert plain(text) == shown


def test_a_bar_ends_no_cell_of_a_card() -> None:
    assert cell("@x|y") == r"`@x\|y`"
    assert cell("x|y") == r"x\|y"


def test_tensorboard(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    """What TensorBoard reads back is what the run's own files say."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "tracked"
    done = aang("train", *train_options, "--log", "tensorboard", "--out", run)
    assert done.status == 0, done.err
    (folder,) = (run / "trackers").iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    weights = [json.loads(line) for line in (run / "weights.jsonl").read_text().splitlines()]
    read = {e.step: e.value for e in events.Scalars("weight/end-task")}
    assert read == {
        line["step"]: pytest.approx(line["end_task_weight"], rel=1e-6) for line in weights
    }
    read = {e.step: e.value for e in events.Scalars("loss/end-task")}
    assert read == {
        line["step"]: pytest.approx(line["losses"]["end-task"], rel=1e-6) for line in weights
    }
    assert {e.step for e in events.Scalars("dev/macro-f1")} == {0, 3, 6}
    done = aang("train", *train_options, "--log", "tensorbord", "--out", tmp_path / "none")
    assert done.status == 2
    assert "tensorboard" in done.err
    assert not (tmp_path / "none").exists()
