"""Rows without a text or label, and classes that only dev or test has: from files to a report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aang import AangClassifier, Run
from sklearn.metrics import f1_score

from tests.training.conftest import Aang


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_run_with_both(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """The dev gradient, class weights, a meta fraction, scores, files, card and page."""
    parts = {name: rows_of(task_files / f"{name}.jsonl") for name in ("train", "dev", "test")}
    given = {
        "train": [*parts["train"], {"text": "no label"}, {"text": " ", "label": "x"}],
        "dev": [*parts["dev"], {"text": "rare", "label": "new"}, {"text": "", "label": "new"}],
        "test": [*parts["test"], *({"text": f"rare {i}", "label": "new"} for i in range(3))],
    }
    files = {name: write(tmp_path / f"{name}.jsonl", rows) for name, rows in given.items()}
    command = [
        *("train", *train_options, *(p for n, f in files.items() for p in (f"--{n}", f))),
        *("--space", "x+y+z", "--class-weights", "balanced", "--steps", 2, "--eval-every", 2),
        *("--meta-fraction", 0.5, "--out", tmp_path / "run"),
    ]
    refused = aang(*command)
    assert refused.status == 2
    assert "train.jsonl:97: there is no column 'label'" in refused.err
    assert "2 of 98 rows lack a text or a label, the first in lines 97, 98." in refused.err
    done = aang(*command, "--skip-bad-rows")
    assert done.status == 0, done.err
    assert "left out    2 of train, 1 of dev: rows without a text or a label" in done.err
    assert "3 rows of test with a class that train lacks ('new'), counted as wrong" in done.err

    run = Run.open(tmp_path / "run")
    data, evaluation = run.records.data, run.records.evaluation
    sizes = {name: (part.examples, part.left_out) for name, part in data.parts.items()}
    assert sizes == {"train": (96, 2), "dev": (21, 1), "test": (43, 0)}
    assert [part.labels["new"] for part in data.parts.values()] == [0, 1, 3]
    assert evaluation.unseen == ["new"]
    assert evaluation.test.classes["new"].document() == {
        **dict.fromkeys(("precision", "recall", "f1"), 0.0),
        "examples": 3,
    }
    assert "1 × row without a label, left out (first: " in " ".join(data.notes)
    assert "`new`" not in (run.folder / "model" / "README.md").read_text(encoding="utf-8")

    truth = [row["label"] for row in given["test"]]
    predicted = run.predict([row["text"] for row in given["test"]])["predicted"].tolist()
    expected = f1_score(truth, predicted, average="macro", zero_division=0)
    assert evaluation.test.scores["macro-f1"] == pytest.approx(expected)
    found = run.evaluate(files["test"])
    assert found.scores == pytest.approx(dict(evaluation.test.scores))
    assert found.notes[0].startswith(f"3 rows of {files['test']} with a class that the model")
    assert found.confusion.loc["new"].sum() == 3
    assert len(run.evaluate(files["dev"], skip_bad_rows=True).confusion) == len(evaluation.labels)

    refused = aang("evaluate", run.folder, "--data", files["dev"])
    assert "dev.jsonl:42: column 'text' is empty." in refused.err
    done = aang("evaluate", run.folder, "--data", files["dev"], "--skip-bad-rows", "--json")
    assert json.loads(done.out)["classes"]["new"]["examples"] == 1
    assert "1 × row without a text, left out" in done.err
    assert aang("report", run.folder, "--out", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "left out" in page


def test_the_estimator_takes_dev_rows_of_another_class(options: dict[str, Any]) -> None:
    texts, labels = ["It rains.", "It shines."] * 4, ["bad", "good"] * 4
    options = {**options, "steps": 1, "eval_every": 1, "weighter": "single-task"}
    for name in ("train", "dev"):
        del options[name]
    fitted = AangClassifier(**options).fit(
        texts, labels, dev=(["Well.", *texts[:2]], ["average", *labels[:2]])
    )
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.predict_proba(texts[:3]).shape == (3, 2)
    assert fitted.result_["metric"]["dev"] <= 2 / 3
    with pytest.raises(ValueError, match="no label of dev, such as 1, occurs in y"):
        AangClassifier(**options).fit(texts, labels, dev=(texts[:2], [1, 2]))
