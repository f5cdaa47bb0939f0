"""Whatever data, names and folders hold, a terminal does nothing but show it."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.commands import Lines, TrainingProgress, echo, note, print_table
from tests.support.plugins import ACTING, one_line, printable
from tests.training.conftest import Aang

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\u202egnp.exe\u2066\u2028[red]x[/red] [link=http://x]y[/link]"
"""Clears the screen, sets the title, colours, overwrites, turns round; and rich's markup."""

SHOWN = r"\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\u202egnp.exe\u2066\u2028[red]x[/red] [link=http://x]y[/link]"


def test_what_acts_is_written_out_and_the_rest_stays() -> None:
    assert printable(EVIL) == SHOWN
    for text in ("a\nb\tc", "مرحبا\u200f", "👩\u200d💻", "naïve — 日本", "é"):
        assert printable(text) == text
    assert one_line("a\nnote: b") == r"a\nnote: b"


def test_tables_notes_and_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell is as wide as what is shown of it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(["name", "next"], [[EVIL, "1"], ["x\ny", "2"]])
    note(EVIL)
    echo(EVIL, err=True)
    out, err = capsys.readouterr()
    assert SHOWN in out
    assert not ACTING.search(out.replace("\n", ""))
    assert not ACTING.search(err)
    assert (
        len({line.rindex(end) for line, end in zip(out.splitlines()[1:], "12", strict=True)}) == 1
    )


def test_records_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(["name", "next"], [[EVIL, EVIL]])
    assert not ACTING.search(capsys.readouterr().out)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """The line of a run that is watched through a pipe, and the state of a bar."""
    training = TrainingProgress("", 3, "accuracy", Lines())
    training.after_round(1, {"weights": {EVIL: 0.9, "b": 0.1}, "end_task_weight": 0.5})
    training.after_evaluation(1, {"accuracy": 0.5}, True, {"end-task": 0.7, EVIL: 2.0})
    assert SHOWN in training.state()
    _, err = capsys.readouterr()
    assert SHOWN in err
    assert not ACTING.search(err)


def test_losses_and_the_time_of_all_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means of the objectives that were trained; the estimate is printed once."""
    monkeypatch.setattr("aang.cli.progress.WORTH_TELLING", 0.0)
    training = TrainingProgress("", 100, "accuracy", Lines())
    for step in range(1, 12):
        training.after_round(step, {"weights": {}, "end_task_weight": 1.0})
    training.after_evaluation(11, {"accuracy": 0.5}, True, {"end-task": 0.25, "a": 1.0, "b": 2.0})
    training.after_evaluation(12, {"accuracy": 0.5}, False, {"denoise": 4.0})
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("training: about ") for line in lines) == 1
    assert any("for 100 steps, an estimate from 4 of them; peak memory" in line for line in lines)
    assert "step 11: dev accuracy 50.00 (best) · loss 0.2500, objectives 1.5000" in lines
    assert "step 12: dev accuracy 50.00 · loss 4.0000" in lines


def test_names_of_files(aang: Aang, tmp_path: Path) -> None:
    """Errors of ours and of click's quote them; a shell's glob is enough to give one."""
    for arguments in (
        ["report", tmp_path / EVIL],
        ["train", "--train", tmp_path / EVIL],
        ["train", "--space", f"{EVIL}.yaml"],
        ["train", "--device", EVIL],
        ["--plugin", tmp_path / EVIL, "plugins"],
        [EVIL],
        ["train", f"--{EVIL}"],
        ["train", "--steps", EVIL],
        ["compare", "--method", EVIL],
        ["show-space", EVIL],
    ):
        done = aang(*arguments)
        assert done.status == 2, arguments
        assert not ACTING.search(done.out + done.err), arguments


def test_plugins(aang: Aang, tmp_path: Path) -> None:
    """The name of the file, what it raises, and what it registers."""
    plugin = tmp_path / "evil\x1b[31m.py"
    plugin.write_text(f"raise ValueError({EVIL!r})\n")
    for command in (["plugins"], ["list-spaces"], ["--debug", "list-spaces"]):
        done = aang("--plugin", plugin, *command)
        assert done.status == 0
        assert "failed" in done.out + done.err
        assert not ACTING.search(done.out + done.err)
    plugin.write_text(
        "from aang_core import hookimpl\n@hookimpl\ndef aang_register_transforms(register):\n"
        f"    register('x', {EVIL!r}, 'a:b')\n"
    )
    done = aang("--plugin", plugin, "list-primitives")
    assert "one line of text" in done.out + done.err
    assert not ACTING.search(done.out + done.err)


def test_labels_texts_and_predictions(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes while training, predictions in both forms, the model card; the JSON loses nothing."""
    label = EVIL.replace("\u2028", "")
    lines = [
        json.dumps({"text": f"{EVIL} {i}", "label": (label, "plain")[i % 2]}) for i in range(24)
    ]
    train = tmp_path / "train.jsonl"
    train.write_text(
        "\n".join([*lines, json.dumps({"text": "x", "label": f"{label.upper()} "})] * 2)
    )
    run = tmp_path / "run"
    options = ["--train", train, "--dev", train, "--test", train, "--weighter", "single-task"]
    done = aang("train", *train_options, *options, "--steps", 1, "--out", run)
    assert done.status == 0, done.err
    assert "differ only in case" in done.err
    for text in (done.out, done.err, (run / "model" / "README.md").read_text("utf-8")):
        assert not ACTING.search(text)
    data = tmp_path / "texts.jsonl"
    data.write_text(json.dumps({"text": EVIL}))
    done = aang("predict", run, "--data", data)
    assert done.status == 0, done.err
    assert not ACTING.search(done.out)
    record = json.loads(done.out)
    assert record["text"] == EVIL
    assert label in record["probabilities"]
    done = aang("predict", run, "--data", data, "--format", "csv")
    _, row = csv.reader(io.StringIO(done.out, newline=""))
    assert row[0] == EVIL
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = aang("predict", run, "--data", data, "--format", "csv")
    assert not ACTING.search(done.out.replace("\r\n", "\n"))
    header, row = csv.reader(io.StringIO(done.out))
    assert row[0] == SHOWN
    assert f"probability:{printable(label)}" in header
    assert not ACTING.search(aang("evaluate", run, "--data", data).err)


def test_figures_take_any_name(aang: Aang, train_options: list[object], tmp_path: Path) -> None:
    """matplotlib would read text between dollar signs as a formula and fail."""
    labels = ["$\\frac$", "$x$ \x1b[31m", "_hidden"]
    lines = [json.dumps({"text": f"text {i}", "label": labels[i % 3]}) for i in range(30)]
    train = tmp_path / "train.jsonl"
    train.write_text("\n".join(lines))
    run = tmp_path / "$\\frac$"
    options = ["--train", train, "--dev", train, "--test", train, "--weighter", "single-task"]
    assert aang("train", *train_options, *options, "--steps", 1, "--out", run).status == 0
    done = aang("report", run, "--figures", tmp_path / "figures")
    assert done.status == 0, done.err
    assert "\x1b" not in (tmp_path / "figures" / "confusion-dev.svg").read_text("utf-8")
    done = aang("report", run, run, "--figures", tmp_path / "both", "--out", tmp_path / "both.html")
    assert done.status == 0, done.err


def test_on_a_terminal_a_long_line_is_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    sentence = "one two three four five six runs/a-folder-with-a-long-name/model seven"
    note(sentence)
    assert capsys.readouterr().err == f"note: {sentence}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    note(sentence)
    assert capsys.readouterr().err.splitlines() == [
        "note: one two three four five",
        "      six",
        "      runs/a-folder-with-a-long-name/model",
        "      seven",
    ]
