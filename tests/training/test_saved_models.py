"""A saved model's folder: complete for whoever predicts with it, and for the next training."""

import json
import random
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aang import AangClassifier, Run, train
from transformers import AutoTokenizer, pipeline

from tests.training.conftest import Aang

WORDS = ("the", "event", "loop", "returns", "a", "message", "window", "that", "is", "parsed")
CUT = 12

PAIRS = """
from aang.corpora import LabelledTask, TaskWithTexts
from aang_core import Example, hookimpl

ROWS = tuple(Example(f"It rains {i}", "It is wet", "no yes".split()[i % 2]) for i in range(8))


@hookimpl
def aang_register_tasks(register):
    register("entails", "does one text follow from another?", entails)


def entails(report):
    return TaskWithTexts(LabelledTask("entails", ROWS[:4], ROWS[4:], (), ("no", "yes")))
"""


def text(length: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


TEXTS = [text(600, 1), f"window {text(40, 2)}", "message parsed", f"loop parsed {text(90, 4)}"]
"""All but one are longer than :data:`CUT` tokens, and some longer than the encoder reads."""


@pytest.fixture(scope="module")
def options(encoder: Path) -> Mapping[str, Any]:
    return {
        **{"model": str(encoder), "weighter": "single-task", "max_length": CUT, "steps": 4},
        **{"eval_every": 4, "batch_size": 8, "precision": "fp32", "device": "cpu"},
    }


@pytest.fixture(scope="module")
def run(options: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose texts were cut; their class is in their first words."""
    rows = labelled(48)
    given = {**options, "steps": 24, "eval_every": 12, "lr": 2e-3, "head_lr": 1e-2}
    return train(
        train=rows, dev=rows, out=tmp_path_factory.mktemp("c") / "run", quiet=True, **given
    )


def labelled(count: int, first: int = 0) -> list[dict[str, str]]:
    """Texts of more than :data:`CUT` tokens, of which the first half says one class."""
    beginnings = {"a": "message parsed " * 3, "b": "window loop " * 3}
    return [
        {"text": beginnings["ab"[i % 2]] + text(60, first + i), "label": "ab"[i % 2]}
        for i in range(count)
    ]


def card_example(folder: Path, argument: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the Python code of a folder's card computes for a text, run in that folder."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", card, re.S)
    assert '"…"' in code
    *lines, last = code.replace('"…"', repr(argument)).strip().splitlines()
    names: dict[str, Any] = {}
    monkeypatch.chdir(folder)
    exec("\n".join(lines), names)
    return eval(last, names)


def test_everybody_who_reads_the_folder_cuts_texts_as_in_training(
    aang: Aang, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run in Python, ``aang predict`` of the run and of a copy, and the card's example."""
    copy = shutil.copytree(run.model_folder, tmp_path / "copy")
    expected = run.predict(TEXTS)["P(a)"].tolist()
    for source in (run.folder, copy):
        done = aang("predict", source, *TEXTS)
        assert done.status == 0, done.err
        found = [json.loads(line)["probabilities"]["a"] for line in done.out.splitlines()]
        assert found == pytest.approx(expected, abs=1e-6)
    for one, share in zip(TEXTS, expected, strict=True):
        (answer,) = card_example(copy, one, monkeypatch)
        assert answer["score"] == pytest.approx(max(share, 1 - share), abs=1e-5)
        assert answer["label"] == ("a" if share > 0.5 else "b")


def test_the_scores_of_a_copy_are_the_run_s(aang: Aang, run: Run, tmp_path: Path) -> None:
    copy = shutil.copytree(run.model_folder, tmp_path / "copy")
    rows = labelled(40, first=100)
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = run.evaluate(rows).evaluation.document()
    for source in (run.folder, copy):
        done = aang("evaluate", source, "--data", tmp_path / "test.jsonl", "--json")
        assert done.status == 0, done.err
        found = json.loads(done.out)
        assert {name: found[name] for name in expected} == expected


def test_the_classifier_of_scikit_learn_cuts_so_too(
    options: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, labels = [text(60, i) for i in range(16)], list("ab" * 8)
    classifier = AangClassifier(**options, runs=tmp_path / "runs").fit(texts, labels)
    folder = classifier.run_.model_folder
    for one, (share, _) in zip(TEXTS, classifier.predict_proba(TEXTS), strict=True):
        (answer,) = card_example(folder, one, monkeypatch)
        assert answer["score"] == pytest.approx(max(share, 1 - share), abs=1e-5)


def test_a_folder_of_an_earlier_version(aang: Aang, run: Run, tmp_path: Path) -> None:
    """Its tokenizer may name no length, or what the encoder takes: it is read, as far as it can."""
    for name, limit in (("none", None), ("encoder", 64)):
        old = shutil.copytree(run.folder, tmp_path / name)
        (old / "model.json").unlink()
        file = old / "model" / "tokenizer_config.json"
        settings = json.loads(file.read_text()) | {"model_max_length": limit}
        file.write_text(json.dumps({k: v for k, v in settings.items() if v is not None}))
        copy = shutil.copytree(old / "model", tmp_path / f"{name}-copy")
        shares = []
        for source in (old, copy):
            done = aang("predict", source, *TEXTS)
            assert done.status == 0, done.err
            shares.append([json.loads(x)["probabilities"]["a"] for x in done.out.splitlines()])
        assert shares[0] == pytest.approx(run.predict(TEXTS)["P(a)"].tolist(), abs=1e-6)
        assert shares[1][2] == pytest.approx(shares[0][2], abs=1e-6)
        assert shares[1][1] != pytest.approx(shares[0][1], abs=1e-6)


@pytest.mark.parametrize("kind", ["multi-label", "regression", "token-labels"])
def test_the_card_of_every_kind(
    kind: str,
    kind_files: Path,
    options: Mapping[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its example computes what the run predicts: sets by the threshold, numbers, or tags."""
    files = {part: kind_files / kind / f"{part}.jsonl" for part in ("train", "dev")}
    run = train(**files, **{**options, "lr": 5e-3}, out=tmp_path / "run", quiet=True)
    for one, label in zip(TEXTS, run.predict(TEXTS)["predicted"], strict=True):
        found = card_example(run.model_folder, one, monkeypatch)
        if kind == "multi-label":
            assert sorted(found) == label
        elif kind == "regression":
            assert found[0]["score"] == pytest.approx(label, abs=1e-4)
        else:
            assert [(s["start"], s["end"]) for s in found] == [
                (s["start"], s["end"]) for s in label
            ]


def test_a_model_goes_on_with_longer_texts(
    aang: Aang, encoder: Path, run: Run, tmp_path: Path
) -> None:
    """The next training is not bound to the length of this one, but to the encoder's."""
    rows = [json.dumps({"text": text(20, i), "label": "ab"[i % 2]}) + "\n" for i in range(16)]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    longest = AutoTokenizer.from_pretrained(encoder).model_max_length
    assert AutoTokenizer.from_pretrained(run.model_folder).model_max_length == CUT
    model, length = run.model_folder, 2 * CUT
    for name in ("second", "third"):
        done = aang(
            *("train", "--train", tmp_path / "train.jsonl", "--model", model, "--steps", 1),
            *("--weighter", "single-task", "--max-length", length, "--out", tmp_path / name),
        )
        assert done.status == 0, done.err
        assert f"cut to {min(length, longest)} " in done.err
        model, length = tmp_path / name / "model", 2 * longest
    assert AutoTokenizer.from_pretrained(model).model_max_length == longest
    assert pipeline("text-classification", model=str(model), truncation=True)(TEXTS[0])


def test_a_finished_regression_goes_on(options: Mapping[str, Any], tmp_path: Path) -> None:
    """Its numbers stay where they are, instead of being scaled once more."""
    texts = [text(10, i) for i in range(48)]
    rows = [{"text": one, "label": 100.25 + 20 * one.count("the")} for one in texts]
    first = train(train=rows, out=tmp_path / "first", quiet=True, **options)
    tiny = {**options, "model": str(first.model_folder), "lr": 1e-9, "head_lr": 1e-9}
    second = train(train=rows, out=tmp_path / "second", quiet=True, **tiny)
    expected = first.predict(texts)["predicted"].tolist()
    assert second.predict(texts)["predicted"].tolist() == pytest.approx(expected, abs=1e-2)


def write(folder: Path, name: str, labels: str) -> Path:
    rows = [{"text": text(10, i), "label": labels[i % len(labels)]} for i in range(48)]
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_what_comes_before_training_says_which_head_is_used(
    aang: Aang, encoder: Path, tmp_path: Path
) -> None:
    """In one line, with the reason; an encoder without a head needs none."""
    two, three = write(tmp_path, "two", "ab"), write(tmp_path, "three", "abc")
    small = ("--weighter", "single-task", "--steps", 1, "--max-length", 16)
    first = tmp_path / "first"
    done = aang("train", "--train", two, "--model", encoder, *small, "--out", first)
    assert done.status == 0, done.err
    assert "\nhead " not in done.err
    model = first / "model"
    for more, said in (
        (small[:2], f"that of {model}, which is for the same classes"),
        (("--recipe", "tapt"), "new: pre-training leaves an encoder without a head"),
    ):
        done = aang("train", "--train", two, "--model", model, *more, *small[2:], "--dry-run")
        assert done.status == 0, done.err
        lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
        assert lines["head"] == said
    done = aang("train", "--train", three, "--model", model, *small, "--out", tmp_path / "second")
    assert done.status == 0, done.err
    assert f"\nhead        new: that of {model} is for other classes: 'a', 'b'\n" in done.err


def test_a_folder_knows_that_it_reads_pairs(
    aang: Aang, options: Mapping[str, Any], tmp_path: Path
) -> None:
    """From the first text alone, a copy would predict something else without a word."""
    rows = [{**row, "text_pair": text(5, i)} for i, row in enumerate(labelled(16))]
    given = {**options, "text_pair": "text_pair", "out": tmp_path / "run", "quiet": True}
    run = train(train=rows, dev=rows, **given)
    copy = shutil.copytree(run.model_folder, tmp_path / "copy")
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    of_run, of_copy = (
        aang("predict", source, "--data", tmp_path / "new.jsonl") for source in (run.folder, copy)
    )
    assert of_run.out == of_copy.out
    refused = aang("predict", copy, "one text only")
    assert refused.status == 2
    assert "pairs of texts" in refused.err


def test_a_run_knows_that_a_plugins_task_has_pairs(
    aang: Aang, options: Mapping[str, Any], tmp_path: Path
) -> None:
    """Whose columns no option names."""
    plugin = tmp_path / "brought.py"
    plugin.write_text(PAIRS, encoding="utf-8")
    encoder, run = options["model"], tmp_path / "run"
    small = ("--weighter", "single-task", "--steps", 1, "--model", encoder, "--quiet")
    done = aang("--plugin", plugin, "train", "--dataset", "entails", *small, "--out", run)
    assert done.status == 0, done.err
    (tmp_path / "new.csv").write_text("text,text_pair\nIt rains,It is wet\n", encoding="utf-8")
    done = aang("predict", run, "--data", tmp_path / "new.csv")
    assert done.status == 0, done.err
    refused = aang("predict", run, "It rains")
    assert refused.status == 2
    assert "pairs of texts" in refused.err
