"""``aang train`` from files to a run folder, with a real model and real text."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

from tests.training.conftest import Aang


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


def test_weights_are_recorded_by_name_at_every_step(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """λ_e, weights, cosines and factors of ``factored``, all keyed by names."""
    run = tmp_path / "run"
    assert aang("train", *train_options, "--out", run, "--quiet").status == 0
    records = lines(run / "weights.jsonl")
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


@pytest.mark.full
@pytest.mark.parametrize("weighter", ["static", "meta-tartan", "factored"])
def test_the_same_seed_gives_the_same_run(
    aang: Aang, train_options: list[object], tmp_path: Path, weighter: str
) -> None:
    """Bit-identical weights, metrics and model; another seed gives others."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ("--weighter", weighter, "--seed", seed, "--out", tmp_path / name, "--quiet")
        assert aang("train", *train_options, *options).status == 0

    def content(name: str, file: str) -> bytes:
        return (tmp_path / name / file).read_bytes()

    for file in ("weights.jsonl", "metrics.jsonl", "model/model.safetensors"):
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


@pytest.mark.full
def test_the_model_is_a_plain_classifier_that_needs_no_aang(
    aang: Aang, train_options: list[object], task_files: Path, tmp_path: Path
) -> None:
    """``pipeline`` loads it where ``aang_core`` cannot be imported, with the run's own score."""
    run = tmp_path / "run"
    assert aang("train", *train_options, "--steps", 12, "--out", run, "--quiet").status == 0
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
    pairs = json.loads(done.stdout)
    from sklearn.metrics import f1_score

    score = f1_score(*zip(*pairs, strict=True), average="macro", zero_division=0.0)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert score == pytest.approx(result["metric"]["test"])

    evaluated = aang("evaluate", run, "--data", task_files / "test.jsonl", "--json")
    assert evaluated.status == 0, evaluated.err
    assert json.loads(evaluated.out)["scores"]["macro-f1"] == pytest.approx(score)


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


def test_bfloat16_measures_nearly_the_same_cosines(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """The first step's signals, from the same weights and rows, in either precision."""
    first = {}
    for precision in ("fp32", "bf16"):
        run = tmp_path / precision
        options = ("--precision", precision, "--dropout", 0, "--steps", 1, "--out", run, "--quiet")
        # The default dev head measures nothing in the first step.
        own = ("--dev-head", "own-rows")
        assert aang("train", *train_options, *options, *own).status == 0
        first[precision] = lines(run / "weights.jsonl")[0]["cosines"]
    assert first["bf16"] == pytest.approx(first["fp32"], abs=0.03)
    assert first["bf16"] != first["fp32"]


def test_from_scratch_ignores_the_weights_but_not_the_shape(
    aang: Aang, train_options: list[object], encoder: Path, tmp_path: Path
) -> None:
    """Word embeddings of the two starts differ by far more than a step's update."""
    difference = {}
    pretrained = load_file(encoder / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    for flag in ("--from-scratch", "--no-from-scratch"):
        run = tmp_path / flag.strip("-")
        options = (flag, "--steps", 1, "--out", run, "--quiet", "--weighter", "single-task")
        assert aang("train", *train_options, *options).status == 0
        trained = load_file(run / "model/model.safetensors")
        embeddings = trained["bert.embeddings.word_embeddings.weight"]
        assert embeddings.shape == pretrained.shape
        difference[flag] = (embeddings - pretrained).abs().mean().item()
    assert difference["--from-scratch"] > 50 * difference["--no-from-scratch"]


def test_result_for_people_names_score_baseline_and_use(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Standard output says what it scored, against what, and how to use the model."""
    done = aang("train", *train_options, "--out", tmp_path / "run", "--quiet")
    assert done.status == 0
    for part in ("macro-f1", "this run (factored)", "majority class", "pipeline(", "run/model"):
        assert part in done.out


def test_result_tells_chance_and_a_control_that_is_ahead(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Scores are between 0 and 100 for people, and between 0 and 1 in files."""
    done = aang("train", *train_options, "--out", tmp_path / "run", "--quiet")
    assert done.status == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    metric, control = result["metric"], result["controls"]["tf-idf"]
    assert metric["test"] < control["test"] < 1
    low, high = metric["intervals"]["dev"]
    assert low < metric["dev"] < high
    shown = f"{100 * metric['dev']:.2f} ({100 * low:.1f}–{100 * high:.1f})"
    assert f"this run (factored)     {shown}" in done.out
    data = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    assert f"Dev has only {data['parts']['dev']['examples']} rows" in done.out
    assert (
        f"TF-IDF with logistic regression on the same rows: {100 * control['dev']:.2f} on dev, "
        f"{100 * control['test']:.2f} on test, ahead of this model on test." in done.out
    )
    evaluated = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluated["test"]["intervals"]["macro-f1"] == metric["intervals"]["test"]


@pytest.mark.full
def test_a_run_without_out_gets_a_new_folder_named_after_it(
    aang: Aang, train_options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--weighter", "single-task", "--steps", 1, "--quiet", "--json")
    folders = []
    for _ in range(3):
        done = aang("train", *train_options, *options)
        assert done.status == 0, done.err
        folders.append(json.loads(done.out)["run"])
    name = Path(str(train_options[1])).parent.name
    first = f"runs/{name}-td-single-task-seed0"
    assert folders == [first, f"{first}-2", f"{first}-3"]
    assert all((tmp_path / folder / "result.json").is_file() for folder in folders)


def test_how_the_training_ended_is_told(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """At a rate that changes nothing, the first evaluation without a better score is the last."""
    alone = ["train", *train_options, "--weighter", "single-task"]
    still = ["--lr", "1e-12", "--head-lr", "1e-12", "--eval-every", 2]
    done = aang(*alone, *still, "--patience", 1, "--out", tmp_path / "early")
    assert "Training stopped early, after step 2 of 6: 1 evaluation had no" in done.out
    done = aang(*alone, *still, "--out", tmp_path / "all")
    assert "All 6 steps were trained.\n" in done.out


def test_quiet_prints_the_result_alone(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    options = ["train", *train_options, "--weighter", "single-task", "--max-length", 16]
    done = aang(*options, "--quiet", "--out", tmp_path / "run")
    assert done.status == 0
    assert done.err == ""
