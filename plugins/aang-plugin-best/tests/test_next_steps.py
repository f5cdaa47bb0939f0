"""What a search says beyond its verdict: with TF-IDF, on rows of the demo."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aang import AangBest, best
from aang.assembly import read_end_task
from aang.config import TrainConfig

from aang_core import Example, ReadReport
from tests import in_process
from tests.one_layer_encoder import write_one_layer_encoder

pytestmark = pytest.mark.release

CLASSES = ("tkinter", "email")


@pytest.fixture(scope="module")
def demo() -> list[Example]:
    """Labelled texts of two classes of the demo."""
    task, _ = read_end_task(TrainConfig(), ReadReport())
    return [e for e in (*task.train, *task.dev, *task.test) if e.label in CLASSES][:300]


def written(path: Path, examples: list[Example], label: bool = True) -> Path:
    rows = [{"text": e.text, **({"label": e.label} if label else {})} for e in examples]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, demo: list[Example]) -> Path:
    """The folder of a search over 80 rows, three of them with a wrong label."""
    root = tmp_path_factory.mktemp("next")
    write_one_layer_encoder(root / "encoder")
    examples = [
        replace(e, label=CLASSES[e.label == CLASSES[0]]) if i in WRONG else e
        for i, e in enumerate(demo[:80])
    ]
    done = in_process.aang(
        *("best", "--train", written(root / "train.jsonl", examples), "--candidate", "tf-idf"),
        *("--unlabelled", written(root / "more.jsonl", demo[70:], label=False)),
        *("--answer-at", "0.9", "--model", root / "encoder", "--out", root / "best"),
    )
    assert done.returncode == 0, done.stderr
    return root / "best"


WRONG = (5, 30, 61)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def verdict_in(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "best.json").read_text())
    return content


def test_confusion_and_scores_agree(found: Path) -> None:
    verdict = verdict_in(found)
    counts = np.array(verdict["confusion"])
    assert counts.sum() == verdict["rows"] == 80
    f1 = [of["f1"] for of in verdict["by_class"].values()]
    assert np.mean(f1) == pytest.approx(verdict["score"])
    rows = table(found / "confusion.csv")
    assert [row["true"] for row in rows] == verdict["classes"]
    assert [[int(row[name]) for name in verdict["classes"]] for row in rows] == counts.tolist()


def test_wrong_labels_are_doubted(found: Path) -> None:
    """The three are among the first, each with its line in the user's file."""
    places = [row["place"].rpartition(":")[2] for row in table(found / "doubtful.csv")]
    assert {str(i + 1) for i in WRONG} <= set(places[:8])
    first = table(found / "doubtful.csv")[0]
    assert first["label"] != first["suggested"]
    assert float(first["P(suggested)"]) > float(first["P(label)"])


def test_uncertain_predictions_are_empty(found: Path, demo: list[Example]) -> None:
    """As the threshold says, in the command and in Python."""
    wanted = verdict_in(found)["answer_at"]
    assert 0.5 < wanted["threshold"] < 1
    texts = [e.text for e in demo[80:200]]
    done = in_process.aang("predict", found, *texts)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    sure = [max(line["probabilities"].values()) >= wanted["threshold"] for line in lines]
    assert [line["predicted"] != "" for line in lines] == sure
    assert 0 < sum(sure) < len(sure)
    again = AangBest.load(found).predict(texts)
    assert again.tolist() == [line["predicted"] for line in lines]


def test_an_accuracy_that_nothing_reaches_leaves_all_empty(
    demo: list[Example], tmp_path: Path
) -> None:
    """Labels by chance: the verdict says that no threshold is enough, and nothing is answered."""
    generator = np.random.default_rng(1)
    examples = [replace(e, label=CLASSES[generator.integers(2)]) for e in demo[:60]]
    classifier = best(
        train=written(tmp_path / "train.jsonl", examples),
        candidates=["tf-idf"],
        answer_at=0.99,
        out=tmp_path / "best",
        quiet=True,
    )
    assert classifier.verdict_["answer_at"]["threshold"] is None
    assert classifier.predict([e.text for e in demo[:5]]).tolist() == [""] * 5


def test_what_to_label_next(found: Path, demo: list[Example]) -> None:
    """New texts only, the least sure ones of each cluster first."""
    rows = table(found / "label_next.csv")
    told = verdict_in(found)["label_next"]
    assert told["texts"] == len(rows) == 100 < told["of"]
    labelled = {e.text for e in demo[:80]}
    assert not labelled & {row["text"] for row in rows}
    clusters = [row["cluster"] for row in rows]
    several = len(set(clusters))
    assert several == len(set(clusters[:several])) > 5
    for name in set(clusters):
        margins = [float(row["margin"]) for row in rows if row["cluster"] == name]
        assert margins == sorted(margins)


def test_the_learning_curve(found: Path) -> None:
    """The last point is what the board has; all points are of the same rows."""
    curve, verdict = verdict_in(found)["learning_curve"], verdict_in(found)
    assert [point["rows"] for point in curve["points"]] == pytest.approx([16, 32, 48, 64], abs=2)
    assert curve["points"][-1]["score"] == pytest.approx(verdict["score"])
    assert (curve["predicted"], curve["folds"]) == (80, 5)
    low, high = curve["more"]["interval"]
    assert low < curve["more"]["gain"] < high


@pytest.mark.parametrize("wanted", [0, 1, 1.5])
def test_an_accuracy_of_answers_lies_between_zero_and_one(
    found: Path, tmp_path: Path, wanted: float
) -> None:
    done = in_process.aang(
        *("best", "--train", found.parent / "train.jsonl", "--answer-at", wanted),
        *("--out", tmp_path / "best"),
    )
    assert done.returncode == 2
    assert f"--answer-at {wanted:g}" in done.stderr


def test_a_trained_candidate_has_a_learning_curve(
    monkeypatch: pytest.MonkeyPatch, demo: list[Example], tmp_path: Path
) -> None:
    """Its parts are further runs, which another call does not train again."""
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    write_one_layer_encoder(tmp_path / "encoder")
    command = [
        *in_process.NO_PAGE,
        *("best", "--train", written(tmp_path / "train.jsonl", demo[:40])),
        *("--model", tmp_path / "encoder", "--candidate", "plain", "--out", tmp_path / "best"),
        *("--", "--steps", "4", "--eval-every", "2", "--batch-size", "8", "--max-length", "16"),
    ]
    curves = []
    for _ in range(2):
        ended = in_process.aang(*command)
        assert ended.returncode == 0, ended.stderr
        curves.append(verdict_in(tmp_path / "best")["learning_curve"])
    assert curves[0] == curves[1]
    assert [point["rows"] for point in curves[0]["points"]] == pytest.approx([8, 16, 24, 32], abs=2)
    runs = tmp_path / "best" / "runs" / "plain" / "seed-0"
    assert len(list(runs.glob("fold-*-share-*/result.json"))) == 15
    assert not list(runs.glob("fold-*-share-*/model"))
