"""Training on texts and labels of every odd kind at once."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.training.conftest import Aang

ODD = [
    "x",
    "\u200b\u200d\ufeff",
    "\u202e\u2066",
    "\x01\x02",
    "null \x00 inside",
    "half a pair \ud800",
    "مرحبا بالعالم هذا نص",
    "שלום עולם",
    "👩\u200d💻🏳️\u200d🌈",
    "a\u0300\u0301\u0302" * 500,
    "日本語のテキスト",
    "[CLS] [SEP] [MASK] [PAD]",
    "\x1b[31mred",
    "=1+1",
    "<b>bold</b> $x$",
]
LABELS = ["yes", "Yes", True, 7, "نعم", "👍"]


@pytest.mark.parametrize(
    ("words", "objectives"), [(5_000, 6), pytest.param(100_000, 24, marks=pytest.mark.full)]
)
def test_a_training_on_odd_texts(
    aang: Aang, train_options: list[object], tmp_path: Path, words: int, objectives: int
) -> None:
    """With some objectives of the space, and with all; odd texts are reported."""
    texts = [*ODD, "word " * words] * 3
    rows = [{"text": text, "label": LABELS[i % 6]} for i, text in enumerate(texts)]
    rows.append({"text": "the only one", "label": "alone"})
    train = tmp_path / "train.jsonl"
    train.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(json.dumps, rows)).encode())
    dev = tmp_path / "dev.jsonl"
    dev.write_text("\n".join(map(json.dumps, rows[:-1])), encoding="utf-16")
    run = tmp_path / "run"
    options = ["--train", train, "--dev", dev, "--test", dev, "--set", f"factored.n={objectives}"]
    done = aang("train", *train_options, *options, "--steps", 2, "--out", run)
    assert done.status == 0, done.err
    for said in (
        "'Yes' and 'yes'",
        "dev text that is also in",
        "longer than 48 tokens",
        "half a surrogate pair",
        "text without a token that the tokenizer knows; train",
    ):
        assert said in done.err, said
    lines = (run / "weights.jsonl").read_text().splitlines()
    assert len(lines) == 2
    evaluation = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluation["labels"] == sorted(["yes", "Yes", "True", "7", "نعم", "👍", "alone"])
    done = aang("predict", run, "--data", dev)
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) == 48


def test_more_classes_than_a_confusion_matrix_shows(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    rows = [{"text": f"class number {i}", "label": f"c{i}"} for i in range(1001)] * 2
    train = tmp_path / "train.jsonl"
    train.write_text("\n".join(map(json.dumps, rows)))
    run = tmp_path / "run"
    options = ["--train", train, "--dev", train, "--test", train, "--weighter", "single-task"]
    done = aang("train", *train_options, *options, "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    evaluation = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert len(evaluation["labels"]) == 1001
    assert "confusion" not in evaluation["test"]
    assert "confusion-test" not in (run / "report.html").read_text(encoding="utf-8")


def test_bytes_on_standard_input_that_are_no_text(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    options = ["--weighter", "single-task", "--steps", 1, "--quiet"]
    assert aang("train", *train_options, *options, "--out", run).status == 0
    typed = io.TextIOWrapper(io.BytesIO(b"fine\ncaf\xe9\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", typed)
    done = aang("predict", run, "--data", "-", "--quiet")
    assert done.status == 2
    assert "standard input:2: not UTF-8" in done.err
    assert "Traceback" not in done.err
