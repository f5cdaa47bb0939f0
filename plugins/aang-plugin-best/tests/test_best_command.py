"""``aang best`` and ``AangBest``: whole searches, with the smallest encoder."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from aang_plugin_best.verdict import words
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from tests import in_process
from tests.in_process import Aang
from tests.one_layer_encoder import write_one_layer_encoder

TRAINING = ["--", "--steps", "6", "--eval-every", "2", "--batch-size", "8", "--max-length", "16"]
QUICK = ["--candidate", "tf-idf"]
BOTH = [*QUICK, "--candidate", "plain"]


@pytest.fixture
def aang(monkeypatch: pytest.MonkeyPatch) -> Aang:
    """``aang``, whose runs train in this process, too."""
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    return in_process.aang


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The option that names the smallest encoder."""
    encoder = tmp_path_factory.mktemp("encoder")
    write_one_layer_encoder(encoder)
    return ["--model", str(encoder)]


def rows(part: str, count: int) -> list[dict[str, str]]:
    names = ("alpha", "beta")
    return [
        {"text": f"{names[i % 2]} {part} number {i} {names[i % 7 % 2]}", "label": names[i % 2]}
        for i in range(count)
    ]


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    arguments = []
    for part, count in (("train", 40), ("test", 20)):
        path = tmp_path / f"{part}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(part, count)))
        arguments += [f"--{part}", str(path)]
    return arguments


def verdict_in(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "best.json").read_text())
    return found


def test_a_quick_search_answers(aang: Aang, data: list[str], tmp_path: Path) -> None:
    root = tmp_path / "best"
    done = aang("best", *data, *QUICK, "--out", root)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert verdict["chosen"] == "tf-idf"
    assert verdict["interval"][0] <= verdict["score"] <= verdict["interval"][1]
    assert verdict["parts"]["test"]["rows"] == 20
    assert verdict["not_tried"]["plain"] == "not asked for"
    assert "each predicted by a model that had not seen it" in done.stdout
    predicted = aang("predict", root, "alpha once more", "beta once more")
    assert predicted.returncode == 0, predicted.stderr
    lines = [json.loads(line) for line in predicted.stdout.splitlines()]
    assert [line["predicted"] for line in lines] == ["alpha", "beta"]
    evaluated = aang("evaluate", root, "--data", data[3])
    assert evaluated.returncode == 0, evaluated.stderr


def test_an_encoder_with_random_weights_is_not_frozen(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    tried = [*QUICK, "--candidate", "frozen-encoder"]
    done = aang("best", *data, *tried, *model, "--out", tmp_path / "best", "--", "--from-scratch")
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(tmp_path / "best")
    assert verdict["chosen"] == "tf-idf"
    assert "knows nothing" in verdict["not_tried"]["frozen-encoder"]


def test_held_out_texts_that_were_learned_do_not_count_as_new(
    aang: Aang, data: list[str], tmp_path: Path
) -> None:
    train, test = (Path(data[i]).read_text().splitlines() for i in (1, 3))
    known = [line.replace("alpha", "Alpha") for line in train[:5]]
    Path(data[3]).write_text("\n".join([*test, *known]) + "\n")
    done = aang("best", *data, *QUICK, "--out", tmp_path / "best")
    assert done.returncode == 0, done.stderr
    part = verdict_in(tmp_path / "best")["parts"]["test"]
    assert (part["rows"], part["new"]["rows"]) == (25, 20)
    assert "over 25 rows, 5 of them with texts of the labelled rows; " in done.stdout
    assert "new texts" in (tmp_path / "best" / "report.html").read_text()


def test_a_test_set_of_learned_texts_says_nothing(
    aang: Aang, data: list[str], tmp_path: Path
) -> None:
    done = aang("best", "--train", data[1], "--test", data[1], *QUICK, "--out", tmp_path / "best")
    assert done.returncode == 0, done.stderr
    assert "all of its 40 texts are among the labelled rows" in done.stdout


def test_classes_of_few_rows(aang: Aang, tmp_path: Path) -> None:
    """Four rows of each class make four folds."""
    few = [{"text": f"word{k} {i}", "label": f"class {k}"} for k in range(8) for i in "abcd"]
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in few))
    search = ("best", "--train", tmp_path / "few.jsonl", *QUICK)
    done = aang(*search, "--out", tmp_path / "best")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "best" / "data" / "fold-3").is_dir()
    assert not (tmp_path / "best" / "data" / "fold-4").exists()
    refused = aang(*search, "--out", tmp_path / "other", "--", "--metric", "rmse")
    assert refused.returncode != 0
    assert "--metric rmse: the models of a single-label task" in refused.stderr


@pytest.mark.parametrize(
    ("score", "interval", "where"),
    [
        (0.55, (0.4, 0.7), "within the interval above"),
        (0.65, (0.5, 0.8), "outside the interval above, by no more than chance explains"),
        (0.65, (0.63, 0.67), "outside the interval above, by more than chance explains"),
        (0.35, (0.2, 0.5), "outside the interval above, by no more than chance explains"),
        (0.35, (0.33, 0.37), "outside the interval above, by more than chance explains"),
        # All twenty right: 3 / 20 might still be wrong.
        (1.0, (1.0, 1.0), "outside the interval above, by more than chance explains"),
        (0.65, (0.65, 0.65), "outside the interval above, by no more than chance explains"),
    ],
)
def test_a_test_score_beside_the_announced_one(
    aang: Aang,
    data: list[str],
    tmp_path: Path,
    score: float,
    interval: tuple[float, float],
    where: str,
) -> None:
    assert aang("best", *data, *QUICK, "--out", tmp_path / "best").returncode == 0
    verdict = verdict_in(tmp_path / "best") | {"score": 0.5, "interval": (0.4, 0.6)}
    verdict["parts"]["test"] |= {"scores": {verdict["metric"]: score}, "interval": interval}
    assert f"rows, {where};" in "\n".join(words(verdict))


@pytest.mark.full
def test_the_chosen_training_is_done_again_on_all_rows(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    """What is deployed is a plain folder whose probabilities are those of the run, calibrated."""
    root = tmp_path / "best"
    command = [*in_process.NO_PAGE, "best", *data, *model, "--candidate", "plain", "--out", root]
    done = aang(*command, *TRAINING)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    run = root / "runs" / "plain" / "seed-0" / "all-rows"
    result = json.loads((run / "result.json").read_text())
    assert (result["trained_on_dev"], result["steps"]) == (True, verdict["steps"])
    assert json.loads((run / "data.json").read_text())["parts"]["train"]["examples"] == 40
    classify = pipeline("text-classification", model=str(root / "model"), top_k=None)
    shares = {of["label"]: of["score"] for of in classify(["alpha once more"])[0]}
    plain = AutoModelForSequenceClassification.from_pretrained(run / "model")
    tokens = AutoTokenizer.from_pretrained(run / "model")("alpha once more", return_tensors="pt")
    with torch.inference_mode():
        logits = plain(**tokens).logits[0] / verdict["temperature"]
    expected = dict(zip(plain.config.id2label.values(), logits.softmax(0).tolist(), strict=True))
    assert shares == pytest.approx(expected, abs=1e-5)
    # The same options give the same weights again.
    again = aang(*in_process.NO_PAGE, "train", root / "best.yaml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    files = [of / "model" / "model.safetensors" for of in (run, tmp_path / "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    # Nothing is left to do, and nothing changes.
    assert aang(*command, *TRAINING).returncode == 0
    assert {**verdict_in(root), "milliseconds": 0} == {**verdict, "milliseconds": 0}
    other = aang(*command, *TRAINING, "--lr", "0.01")
    assert other.returncode == 2
    assert "holds a search with other --lr" in other.stderr


def test_an_encoder_that_is_newer_than_kept_predictions_is_told(
    aang: Aang, data: list[str], tmp_path: Path
) -> None:
    """Predictions of fitted candidates are kept, too."""
    write_one_layer_encoder(encoder := tmp_path / "encoder")
    command = ["best", *data, *QUICK, "--model", encoder, "--out", tmp_path / "best"]
    assert "is newer" not in aang(*command).stderr
    later = time.time() + 10
    os.utime(encoder / "config.json", (later, later))
    assert aang(*command).stderr.count(f"{encoder} is newer than") == 1


@pytest.mark.full
def test_test_texts_stay_out_of_what_the_deployed_model_reads(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    """Without their labels, too: they are what it is scored on."""
    more = tmp_path / "more.jsonl"
    texts = [row["text"] for row in rows("test", 20)] + ["alpha once more", "beta once more"]
    more.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    reading = ["--candidate", "consistency", "--unlabelled", more, "--out", tmp_path / "best"]
    done = aang(*in_process.NO_PAGE, "best", *data, *model, *reading, *TRAINING)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "best" / "runs" / "consistency" / "seed-0" / "all-rows"
    notes = json.loads((run / "data.json").read_text())["notes"]
    assert any(note.startswith("20 × unlabelled text that is also in test") for note in notes)


@pytest.mark.full
def test_several_models_are_deployed_together(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "best"
    command = [*in_process.NO_PAGE, "best", *data, *model, "--candidate", "plain", "--out", root]
    done = aang(*command, "--deploy", "ensemble", *TRAINING)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert [member[:2] for member in verdict["members"]] == [["plain", s] for s in range(3)]
    listed = json.loads((root / "model" / "together.json").read_text())
    assert len(listed["members"]) == 3
    predicted = aang("predict", root / "model", "alpha once more")
    assert predicted.returncode == 0, predicted.stderr
    shares = json.loads(predicted.stdout)["probabilities"]
    assert sum(shares.values()) == pytest.approx(1.0)


def test_a_candidate_that_fails_does_not_end_the_race(
    aang: Aang, data: list[str], tmp_path: Path
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from sklearn.dummy import DummyClassifier\n"
        "from aang_core import hookimpl\n\n"
        "def broken(config):\n    raise RuntimeError('out of luck')\n\n"
        "class Undefined(DummyClassifier):\n"
        "    def predict_proba(self, X):\n"
        "        return super().predict_proba(X) * float('nan')\n\n"
        "@hookimpl\n"
        "def aang_register_candidates(register):\n"
        "    register('broken', 'fails', broken)\n"
        "    register('undefined', 'predicts NaN', lambda config: Undefined())\n"
        "    register('majority', 'the most frequent class', lambda config: DummyClassifier())\n"
    )
    root = tmp_path / "best"
    names = [part for name in ("broken", "undefined", "majority") for part in ("--candidate", name)]
    names += QUICK
    done = aang("--plugin", plugin, "best", *data, *names, "--out", root)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert "out of luck" in verdict["not_tried"]["broken"]
    assert "predicts NaN" in verdict["not_tried"]["undefined"]
    assert verdict["chosen"] == "tf-idf"
    assert verdict["against"]["majority"]["chance"] > 0.9


@pytest.mark.full
def test_a_training_that_fails_does_not_end_the_race(
    aang: Aang, data: list[str], tmp_path: Path
) -> None:
    """Nor if it was the last one that was to be trained: contrast compares the rows of a pass."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from aang_core import hookimpl\n\n"
        "@hookimpl\n"
        "def aang_register_candidates(register):\n"
        "    register('unfit', 'fails', options={'recipe': 'contrast', 'micro_batch_size': 1})\n"
    )
    root = tmp_path / "best"
    done = aang("--plugin", plugin, "best", *data, "--candidate", "unfit", *QUICK, "--out", root)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert "--micro-batch-size 1" in verdict["not_tried"]["unfit"]
    assert verdict["chosen"] == "tf-idf"


@pytest.fixture
def slow(tmp_path: Path) -> list[Any]:
    """A plug-in with a fitted candidate that takes part in the race, and the file of its fits.

    With KILLED in the environment, the process is killed at its third fit.
    """
    plugin, fits = tmp_path / "slow.py", tmp_path / "fits"
    plugin.write_text(
        "import os, signal, time\n"
        "from sklearn.dummy import DummyClassifier\n"
        "from sklearn.feature_extraction.text import CountVectorizer\n"
        "from sklearn.naive_bayes import MultinomialNB\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from aang_core import hookimpl\n\n"
        "def slow(config):\n"
        f"    with open({str(fits)!r}, 'a') as file:\n"
        "        file.write(f'{config.seed}\\n')\n"
        f"    if os.environ.get('KILLED') and os.path.getsize({str(fits)!r}) == 6:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    time.sleep(float(os.environ.get('SLEEP', 0)))\n"
        "    return make_pipeline(CountVectorizer(), MultinomialNB())\n\n"
        "@hookimpl\n"
        "def aang_register_candidates(register):\n"
        "    register('slow', 'naive Bayes', slow, cost=0.5)\n"
        "    register('majority', 'the most frequent class', lambda config: DummyClassifier())\n"
    )
    return ["--plugin", plugin, *in_process.NO_PAGE], fits


def test_a_fitted_candidate_with_a_cost_takes_part_in_the_race(
    aang: Aang, data: list[str], slow: list[Any], tmp_path: Path
) -> None:
    """It has a seed, a time and a learning curve, and is deployed."""
    before, fits = slow
    root = tmp_path / "best"
    done = aang(*before, "best", *data, "--candidate", "slow", "--out", root)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    # For five folds, for all rows, and for the three shares of each fold.
    assert fits.read_text().split() == ["0"] * 11
    assert (verdict["chosen"], verdict["steps"]) == ("slow", 0)
    assert verdict["learning_curve"]["folds"] == 5
    assert len(json.loads((root / "clock.json").read_text())["runs"]["slow"]) == 5
    predicted = aang("predict", root, "alpha alpha", "beta beta", "--label-only")
    assert predicted.stdout.split() == ["alpha", "beta"]


def test_the_one_that_leads_is_chosen_over_the_folds_that_it_had_time_for(
    aang: Aang, data: list[str], slow: list[Any], tmp_path: Path
) -> None:
    before, _ = slow
    root, train = tmp_path / "best", tmp_path / "more.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows("train", 100)))
    both = ["--candidate", "majority", "--candidate", "slow", "--out", root]
    command = [*before, "best", "--train", train, *data[2:], *both]
    assert aang(*command).returncode == 0
    for fold in ("3", "4"):
        (root / "runs" / "slow" / "seed-0" / f"fold-{fold}.safetensors").unlink()
    clock = json.loads((root / "clock.json").read_text())
    (root / "clock.json").write_text(json.dumps({**clock, "seconds": 3600}))
    (root / "best.json").unlink()
    begun = aang("predict", root, "alpha")
    assert "a search that has not ended; repeat its aang best command" in begun.stderr
    done = aang(*command)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert (verdict["chosen"], verdict["labelled"]) == ("slow", 100)
    assert 55 <= verdict["rows"] <= 65
    assert f"over {verdict['rows']} of 100 rows" in done.stdout
    assert "no time for all folds: it needs --minutes 61" in verdict["not_tried"]["slow"]
    assert verdict["learning_curve"] is None
    assert sum(of["examples"] for of in verdict["by_class"].values()) == verdict["rows"]


@pytest.mark.parametrize(
    ("minutes", "fitted", "said"),
    [
        ("0.03", range(1, 5), "no time for all folds: it needs --minutes 1"),
        ("1e-5", range(1), "no time to begin"),
    ],
)
def test_a_fit_begins_only_if_there_is_time(
    aang: Aang,
    data: list[str],
    slow: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    minutes: str,
    fitted: range,
    said: str,
) -> None:
    """Its first one says how much the others need; it leads, so it gets those that fit."""
    before, fits = slow
    fits.touch()
    monkeypatch.setenv("SLEEP", "0.5")
    both = ["--candidate", "majority", "--candidate", "slow", "--minutes", minutes]
    done = aang(*before, "best", *data, *both, "--out", tmp_path / "best")
    assert done.returncode == 0, done.stderr
    assert len(fits.read_text().split()) in fitted
    verdict = verdict_in(tmp_path / "best")
    assert verdict["chosen"] == "majority"
    assert verdict["not_tried"]["slow"] == said


@pytest.mark.full
def test_a_killed_search_fits_no_fold_twice(
    aang: Aang, data: list[str], slow: list[Any], tmp_path: Path
) -> None:
    before, fits = slow
    command = [*before, "best", *data, *QUICK, "--candidate", "slow", "--out", tmp_path / "best"]
    killed = subprocess.run(
        [sys.executable, "-m", "aang_core", *command],
        env={**os.environ, "KILLED": "1"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    done = aang(*command)
    assert done.returncode == 0, done.stderr
    assert "slow" in {of["name"] for of in verdict_in(tmp_path / "best")["board"]}
    # Five folds, and the third of them twice, whose first fit was killed.
    assert fits.read_text().split()[:6] == ["0"] * 6
    assert "0" not in fits.read_text().split()[6:]


def test_other_rows_are_refused(aang: Aang, data: list[str], tmp_path: Path) -> None:
    command = ["best", *data, *QUICK, "--out", tmp_path / "best"]
    assert aang(*command).returncode == 0
    with Path(data[1]).open("a") as file:
        file.write(json.dumps({"text": "one more", "label": "alpha"}) + "\n")
    done = aang(*command)
    assert done.returncode == 2
    assert "holds a search with other labelled rows" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--candidate", "tfidf"], "did you mean tf-idf"),
        (["--keep-dev"], "goes with --dev"),
        (["--", "--recipe", "contrast"], "--recipe: it is what is chosen"),
        (["--", "--lr", "-1"], "--lr"),
        (["--unlabelled", "nothing.txt"], "nothing.txt"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    aang: Aang, data: list[str], tmp_path: Path, options: list[str], said: str
) -> None:
    done = aang("best", *data, "--out", tmp_path / "best", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "best").exists()


@pytest.mark.full
def test_a_budget_too_short_for_the_encoder_still_answers(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "best"
    done = aang("best", *data, *model, *BOTH, "--minutes", "0.01", "--out", root, *TRAINING)
    assert done.returncode == 0, done.stderr
    verdict = verdict_in(root)
    assert verdict["chosen"] == "tf-idf"
    assert "no time" in verdict["not_tried"]["plain"]


@pytest.mark.full
def test_with_time_for_one_of_two_both_begin_and_the_better_goes_on(
    aang: Aang, data: list[str], model: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "best"
    both = ["--candidate", "plain", "--candidate", "contrast"]
    command = ["best", *data, *model, *both, "--out", root, *TRAINING]
    place = command.index("--out")
    assert aang(*command[:place], "--minutes", "0.001", *command[place:]).returncode == 2
    clock = json.loads((root / "clock.json").read_text())
    clock |= {"seconds": 0, "runs": {"plain": [100.0] * 100, "contrast": [100.0] * 100}}
    (root / "clock.json").write_text(json.dumps(clock))
    done = aang(*command[:place], "--minutes", "10", *command[place:])
    assert done.returncode == 0, done.stderr
    folds = [len(list(root.glob(f"runs/{name}/seed-0/fold-?"))) for name in both[1::2]]
    assert sorted(folds) == [2, 5]
    assert "no time" in str(verdict_in(root)["not_tried"])


@pytest.mark.release
def test_killed_twice_it_ends_with_the_same_verdict(
    data: list[str], model: list[str], tmp_path: Path
) -> None:
    def search(root: Path) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "aang_core", *in_process.NO_PAGE, "best", *data, *model]
        plain = ["--candidate", "plain", "--out", str(root)]
        return subprocess.Popen([*command, *plain, *TRAINING])

    assert search(tmp_path / "whole").wait() == 0
    root = tmp_path / "killed"
    for number in (1, 3):
        process = search(root)
        while len(list(root.glob("runs/plain/seed-*/fold-*/config.yaml"))) < number:
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert search(root).wait() == 0
    whole, found = verdict_in(tmp_path / "whole"), verdict_in(root)
    assert {**found, "milliseconds": 0} == {**whole, "milliseconds": 0}


def test_a_frozen_encoder_outlives_the_folder_of_its_search(
    monkeypatch: pytest.MonkeyPatch, model: list[str]
) -> None:
    """A search without ``out`` removes its folder, and a pickle may go to another machine."""
    from aang import AangBest

    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    texts = [row["text"] for row in rows("train", 40)]
    labels = [row["label"] == "alpha" for row in rows("train", 40)]
    options = {"answer_at": 0.99}
    found = AangBest(candidates=["frozen-encoder"], model=model[1], options=options)
    shares = found.fit(texts, labels).predict_proba([*texts, "\ud800 alpha"])
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict_proba([*texts, "\ud800 alpha"]), shares)
    assert set(found.predict(texts)) <= {True, False, ""}
    assert 0 < found.score(texts, labels) <= 1
    with pytest.raises(ValueError, match="fitted to single texts"):
        found.predict([("one", "two")])


def test_from_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Labels of any kind, texts in memory, and the same classifier from its folder."""
    from aang import AangBest

    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    texts = [row["text"] for row in rows("train", 40)]
    labels = [10 if row["label"] == "alpha" else 2 for row in rows("train", 40)]
    found = AangBest(candidates=["tf-idf"], out=tmp_path / "best").fit(texts, labels)
    assert found.classes_.tolist() == [2, 10]
    assert found.predict(["alpha once more", "beta once more"]).tolist() == [10, 2]
    loaded = AangBest.load(tmp_path / "best")
    assert np.allclose(
        loaded.predict_proba(texts)[:, [list(loaded.classes_).index(n) for n in ("2", "10")]],
        found.predict_proba(texts),
    )
