"""``aang train`` from files to a run folder, with a real model and real text."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aang import Run
from aang.cli.result import print_result
from safetensors.torch import load_file
from sklearn.metrics import f1_score
from transformers import pipeline

from tests.training.conftest import Aang
from tests.training.forks import Forks
from tests.training.trainers import build


@dataclass(frozen=True)
class Trained:
    """A finished run, and what was said."""

    run: Path
    said: str


@pytest.fixture(scope="module")
def trained(
    forks: Forks, train_options: list[object], tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    """Six steps of ``factored`` on td, which tests only read."""
    run = tmp_path_factory.mktemp("trained") / "run"
    child = forks.aang("train", *train_options, "--out", run, "--quiet")
    assert child.wait() == 0, child.said
    return Trained(run, child.said)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("weighter", "space", "objectives"),
    [
        ("single-task", "td", 0),
        ("static", "td", 24),
        ("meta-tartan", "td", 24),
        ("factored", "td", 24),
        ("factored", "td+ed", 40),
    ],
)
def test_a_run_leaves_everything_in_its_folder(
    aang: Aang,
    train_options: list[object],
    domain: list[object],
    tmp_path: Path,
    weighter: str,
    space: str,
    objectives: int,
) -> None:
    """Every weighter trains; the folder and ``result.json`` have the documented form."""
    run = tmp_path / "run"
    text = domain if space == "td+ed" else []
    done = aang(
        *("train", *train_options, *text, "--weighter", weighter, "--space", space),
        *("--seed", 3, "--out", run, "--json", "--quiet"),
    )
    assert done.status == 0, done.err
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert json.loads(done.out) == {**result, "run": str(run)}
    assert result["weighter"] == weighter
    assert result["space"] == space
    assert result["seed"] == 3
    assert result["objectives"] == objectives
    assert result["metric"]["name"] == "macro-f1"
    for part in ("dev", "test"):
        assert 0 <= result["metric"][part] <= 1
        assert 0 < result["majority"][part] < 1
    assert 0 <= result["best_step"] <= result["steps"] == 6
    assert result["train_seconds"] > 0
    assert result["peak_memory_bytes"] > 10**7
    metrics = lines(run / "metrics.jsonl")
    assert [m["step"] for m in metrics] == [0, 3, 6]
    assert max(m["dev"]["macro-f1"] for m in metrics) == result["metric"]["dev"]
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["steps"] == 6
    assert config["lr"] == 1e-4
    used = json.loads((run / "plugins.json").read_text(encoding="utf-8"))["primitives"]
    assert f"weighter/{weighter}" in used
    assert ("output/denoise" in used) == bool(objectives)
    assert {p.name for p in run.iterdir()} == {
        *("config.yaml", "plugins.json", "metrics.jsonl", "weights.jsonl"),
        *("checkpoints", "model", "result.json"),
        *("cost.jsonl", "data.json", "inputs.json", "evaluation.json", "model.json"),
        "report.html",
    }


def test_weights_are_recorded_by_name_at_every_step(trained: Trained) -> None:
    """λ_e, weights, cosines and factors of ``factored``, all keyed by names."""
    records = lines(trained.run / "weights.jsonl")
    assert [r["step"] for r in records] == [1, 2, 3, 4, 5, 6]
    for record in records:
        assert len(record["weights"]) == 24
        assert math.isclose(record["end_task_weight"] + sum(record["weights"].values()), 1.0)
        sampled = set(record["coefficients"]) - {"end-task"}
        assert len(sampled) == 3
        # There is nothing to fit the dev head to in the first two steps.
        assert ("cosines" in record) == (record["step"] > 2)
        cosines = record.get("cosines", {})
        assert set(cosines) == ({*sampled, "end-task"} if cosines else set())
        assert all(-1 <= c <= 1 for c in cosines.values())
        assert set(record["factors"]) == {"all", "data", "transform", "representation", "output"}
        assert set(record["factors"]["output"]) == {"denoise", "end-task"}
    assert any(value != 0 for value in records[-1]["factors"]["all"].values())


CONTENT = ("weights.jsonl", "metrics.jsonl", "model/model.safetensors")


def test_the_same_seed_gives_the_same_run(
    aang: Aang, train_options: list[object], trained: Trained, tmp_path: Path
) -> None:
    """In another process, bit by bit; another seed gives another model."""
    for name, seed in (("again", 0), ("other", 1)):
        out = ("--seed", seed, "--out", tmp_path / name, "--quiet")
        assert aang("train", *train_options, *out).status == 0
    for file in CONTENT:
        assert (tmp_path / "again" / file).read_bytes() == (trained.run / file).read_bytes(), file
    model = (tmp_path / "other" / CONTENT[-1]).read_bytes()
    assert model != (trained.run / CONTENT[-1]).read_bytes()


@pytest.mark.full
@pytest.mark.parametrize("weighter", ["static", "meta-tartan"])
def test_the_same_seed_gives_the_same_run_of_other_weighters(
    aang: Aang, train_options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Bit-identical weights, metrics and model; another seed gives others."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ("--weighter", weighter, "--seed", seed, "--out", tmp_path / name, "--quiet")
        assert aang("train", *train_options, *options).status == 0

    def content(name: str, file: str) -> bytes:
        return (tmp_path / name / file).read_bytes()

    for file in CONTENT:
        assert content("a", file) == content("b", file), file
    assert content("a", "model/model.safetensors") != content("c", "model/model.safetensors")


def test_a_config_file_holds_options_and_the_command_line_wins(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Precedence of options over the file over the defaults, primitives' options included."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "weighter: factored\nseed: 5\neval-every: 2\nset:\n  factored: {n: 2, lr: 0.5}\n",
        encoding="utf-8",
    )
    run = tmp_path / "run"
    options = ("--seed", 6, "--set", "factored.n=1", "--out", run, "--quiet")
    done = aang("train", file, *train_options, *options)
    assert done.status == 0, done.err
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["seed"] == 6
    assert config["eval_every"] == 3
    assert config["set"] == {"factored": {"n": 1, "lr": 0.5}}
    assert all(len(r["coefficients"]) == 2 for r in lines(run / "weights.jsonl"))


def test_the_model_is_a_plain_classifier(aang: Aang, trained: Trained, task_files: Path) -> None:
    """``pipeline`` and ``aang evaluate`` find the run's own score."""
    rows = lines(task_files / "test.jsonl")
    classify = pipeline("text-classification", model=str(trained.run / "model"))
    answers = classify([row["text"] for row in rows], truncation=True, max_length=48)
    pairs = [(row["label"], answer["label"]) for row, answer in zip(rows, answers, strict=True)]
    score = score_of(pairs)
    result = json.loads((trained.run / "result.json").read_text(encoding="utf-8"))
    assert score == pytest.approx(result["metric"]["test"])
    evaluated = aang("evaluate", trained.run, "--data", task_files / "test.jsonl", "--json")
    assert evaluated.status == 0, evaluated.err
    assert json.loads(evaluated.out)["scores"]["macro-f1"] == pytest.approx(score)


def score_of(pairs: Sequence[Sequence[str]]) -> float:
    """Macro-F1 of pairs of a label and a prediction."""
    return float(f1_score(*zip(*pairs, strict=True), average="macro", zero_division=0.0))


@pytest.mark.full
def test_the_model_needs_no_aang(trained: Trained, task_files: Path) -> None:
    """``pipeline`` loads it where ``aang_core`` cannot be imported, with the run's own score."""
    run = trained.run
    program = """
import json, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "aang_core":
            raise ImportError("not here")
sys.meta_path.insert(0, Refuse())
from transformers import pipeline
classify = pipeline("text-classification", model=sys.argv[1])
rows = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
answers = classify([row["text"] for row in rows], truncation=True, max_length=48)
json.dump([[row["label"], answer["label"]] for row, answer in zip(rows, answers)], sys.stdout)
assert "aang_core" not in sys.modules
"""
    command = [sys.executable, "-c", program, str(run / "model"), str(task_files / "test.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert score_of(json.loads(done.stdout)) == pytest.approx(result["metric"]["test"])


def test_the_best_model_is_kept_not_the_last(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """With a learning rate that ruins the model at once, the untrained one is what is saved."""
    run = tmp_path / "run"
    options = ("--lr", 5.0, "--head-lr", 5.0, "--weighter", "single-task", "--warmup", 0)
    done = aang("train", *train_options, *options, "--steps", 30, "--patience", 2, "--out", run)
    assert done.status == 0, done.err
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    metrics = lines(run / "metrics.jsonl")
    best = max(metrics, key=lambda m: m["dev"]["macro-f1"])
    assert result["best_step"] == best["step"]
    assert result["metric"]["dev"] == best["dev"]["macro-f1"]
    after_best = [m for m in metrics if m["step"] > result["best_step"]]
    assert len(after_best) == 2, "training stops when patience is spent"
    assert result["steps"] < 30


def test_bfloat16_measures_nearly_the_same_cosines(options: dict[str, Any]) -> None:
    """The first step's signals, from the same weights and rows, in either precision."""
    first = {}
    for precision in ("fp32", "bf16"):
        # The default dev head measures nothing in the first step.
        own = {"space": "td", "weighter": "factored", "dev_head": "own-rows", "steps": 1}
        _, _, trainer, _, records = build(options, precision=precision, dropout=0.0, **own)
        trainer.train()
        first[precision] = records.weights[0]["cosines"]
    assert first["bf16"] == pytest.approx(first["fp32"], abs=0.03)
    assert first["bf16"] != first["fp32"]


def test_from_scratch_ignores_the_weights_but_not_the_shape(
    options: dict[str, Any], encoder: Path
) -> None:
    """Word embeddings of the two starts differ by far more than a step's update."""
    difference = {}
    name = "embeddings.word_embeddings.weight"
    pretrained = load_file(encoder / "model.safetensors")[f"bert.{name}"]
    for scratch in (True, False):
        more = {"from_scratch": scratch, "weighter": "single-task"}
        _, assembly, trainer, _, _ = build(options, **more)
        trainer.weighter.round(trainer.bench)
        (embeddings,) = (
            value for key, value in assembly.model.body.state_dict().items() if key.endswith(name)
        )
        assert embeddings.shape == pretrained.shape
        difference[scratch] = (embeddings - pretrained).abs().mean().item()
    assert difference[True] > 50 * difference[False]


def test_result_for_people_names_score_baseline_and_use(trained: Trained) -> None:
    """It says what it scored, against what, and how to use the model."""
    for part in ("macro-f1", "this run (factored)", "majority class", "pipeline(", "run/model"):
        assert part in trained.said


def test_result_tells_chance_and_a_control_that_is_ahead(trained: Trained) -> None:
    """Scores are between 0 and 100 for people, and between 0 and 1 in files."""
    result = json.loads((trained.run / "result.json").read_text(encoding="utf-8"))
    metric, control = result["metric"], result["controls"]["tf-idf"]
    assert metric["test"] < control["test"] < 1
    low, high = metric["intervals"]["dev"]
    assert low < metric["dev"] < high
    shown = f"{100 * metric['dev']:.2f} ({100 * low:.1f}–{100 * high:.1f})"
    assert f"this run (factored)     {shown}" in trained.said
    data = json.loads((trained.run / "data.json").read_text(encoding="utf-8"))
    assert f"Dev has only {data['parts']['dev']['examples']} rows" in trained.said
    assert (
        f"TF-IDF with logistic regression on the same rows: {100 * control['dev']:.2f} on dev, "
        f"{100 * control['test']:.2f} on test, ahead of this model on test." in trained.said
    )
    evaluated = json.loads((trained.run / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluated["test"]["intervals"]["macro-f1"] == metric["intervals"]["test"]


def test_a_run_without_out_gets_a_new_folder_named_after_it(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--weighter", "single-task", "--steps", 1, "--quiet", "--json")
    folders = []
    name = Path(str(train_options[1])).parent.name
    first = f"runs/{name}-td-single-task-seed0"
    for _ in range(2):
        done = aang("train", *train_options, *options)
        assert done.status == 0, done.err
        folders.append(json.loads(done.out)["run"])
        Path(f"{first}-2").mkdir(exist_ok=True)
    assert folders == [first, f"{first}-3"]
    assert all((tmp_path / folder / "result.json").is_file() for folder in folders)


def test_how_the_training_ended_is_told(
    aang: Aang, train_options: list[object], trained: Trained, tmp_path: Path
) -> None:
    """At a rate that changes nothing, the first evaluation without a better score is the last."""
    alone = ["train", *train_options, "--weighter", "single-task"]
    still = ["--lr", "1e-12", "--head-lr", "1e-12", "--eval-every", 2]
    done = aang(*alone, *still, "--patience", 1, "--out", tmp_path / "early")
    assert "Training stopped early, after step 2 of 6: 1 evaluation had no" in done.out
    assert "All 6 steps were trained.\n" in trained.said


def test_a_score_that_another_precision_changes_is_explained(
    trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps are scored as they are trained, and the saved model in fp32."""
    run = Run.open(trained.run)
    scores = run.outcome.metric.model_copy(update={"dev": 0.125})
    halved = {"metric": scores, "precision": "bf16"}
    for changed, told in (halved, True), ({"precision": "bf16"}, False):
        print_result(replace(run, outcome=run.outcome.model_copy(update=changed)))
        assert ("Steps were scored in bf16, this one with" in capsys.readouterr().out) is told


def test_quiet_prints_the_result_alone(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    options = ["train", *train_options, "--weighter", "single-task", "--max-length", 16]
    done = aang(*options, "--quiet", "--out", tmp_path / "run")
    assert done.status == 0
    assert done.err == ""
