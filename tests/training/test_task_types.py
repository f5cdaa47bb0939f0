"""Every kind of end task from files to predictions, on both engines, and resumed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from aang import Run
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from aang_core import AangError, ConfigError, load_plugins
from benchmarks.small_kinds import KINDS
from tests.support.runs import (
    Predictor,
    applied_scores,
    assemble,
    build_trainer,
    prepare_sources,
    resolve_config,
    resolve_training,
)
from tests.support.training import Trainer
from tests.training.conftest import Aang
from tests.training.trainers import CPU

METRICS = {"multi-label": "macro-f1", "regression": "spearman", "token-labels": "entity-f1"}
BASELINES = {
    "multi-label": "best constant set of classes",
    "regression": "mean of train",
    "token-labels": "most frequent tag",
}


@pytest.fixture(scope="session")
def kind_options(kind_files: Path, encoder: Path) -> Callable[[str], dict[str, Any]]:
    def options(kind: str) -> dict[str, Any]:
        return {
            "train": kind_files / kind / "train.jsonl",
            "dev": kind_files / kind / "dev.jsonl",
            "test": kind_files / kind / "test.jsonl",
            "model": str(encoder),
            "space": str(kind_files / "space.yaml"),
            "weighter": "factored",
            "set": {"factored": {"n": 4}},
            "max_length": 32,
            "precision": "fp32",
            "dropout": 0.0,
            "steps": 8,
            "eval_every": 4,
            **dict.fromkeys(("batch_size", "dev_batch_size", "aux_batch_size"), 8),
        }

    return options


def build(options: Mapping[str, Any]) -> Trainer:
    sources = prepare_sources(resolve_config({}, options), load_plugins().registry)
    torch.manual_seed(0)
    return build_trainer(assemble(sources), CPU)


@pytest.mark.parametrize("kind", KINDS)
def test_from_files_to_predictions(
    aang: Aang, kind_files: Path, encoder: Path, tmp_path: Path, kind: str
) -> None:
    """The kind is found, recorded and saved; every command understands the run."""
    run = tmp_path / "run"
    parts = [
        a for p in ("train", "dev", "test") for a in (f"--{p}", kind_files / kind / f"{p}.jsonl")
    ]
    small = [a for n in ("batch", "dev-batch", "aux-batch") for a in (f"--{n}-size", 8)]
    done = aang(
        *("train", *parts, "--model", encoder, "--space", kind_files / "space.yaml", *small),
        *("--weighter", "factored", "--steps", 4, "--eval-every", 2, "--max-length", 32),
        *("--out", run, "--quiet", "--json"),
    )
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert result["metric"]["name"] == METRICS[kind]
    recorded = json.loads((run / "data.json").read_text())
    assert recorded["task_type"] == kind
    assert any(kind in note and "--task-type" in note for note in recorded["notes"])
    assert f"task_type: {kind}\n" in (run / "config.yaml").read_text()
    assert (run / "report.html").is_file()
    auto = (
        AutoModelForTokenClassification
        if kind == "token-labels"
        else AutoModelForSequenceClassification
    )
    model, info = auto.from_pretrained(run / "model", output_loading_info=True)
    assert not info["missing_keys"]
    problem = {"multi-label": "multi_label_classification", "regression": "regression"}
    assert model.config.problem_type == problem.get(kind)
    done = aang("evaluate", run, "--data", kind_files / kind / "test.jsonl", "--json")
    assert done.status == 0, done.err
    scores = json.loads(done.out)["scores"]
    of_test = json.loads((run / "evaluation.json").read_text())["test"]["scores"]
    # Rounding swaps the ranks of numbers that are nearly alike.
    assert scores == pytest.approx(of_test, abs=5e-3)
    done = aang("predict", run, "Return the message if the window is there.")
    assert done.status == 0, done.err
    predicted = json.loads(done.out)["predicted"]
    assert isinstance(predicted, float if kind == "regression" else list)
    opened = Run.open(run)
    test = kind_files / kind / "test.jsonl"
    rows = [json.loads(line) for line in test.read_text(encoding="utf-8").splitlines()]
    for data in (test, rows, pd.DataFrame(rows)):
        found = opened.evaluate(data)
        assert found.scores == scores
    predictor = Predictor.load(run, CPU)
    with torch.no_grad():
        next(predictor.model.parameters()).fill_(torch.nan)
    with pytest.raises(AangError, match="the model computes NaN or infinity for its texts"):
        applied_scores(predictor, test, batch_size=8)
    assert BASELINES[kind] in repr(opened)
    assert "majority class" not in repr(opened)


PLUGIN = """
from aang_core import Data, Example, RegisterPrimitive, hookimpl


class Halves(Data):
    def examples(self, context):
        return [Example(e.text, label=e.label) for e in context.train[:16]]


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    register("halves", "some of train", Halves, provides=("text", "labels:end-task"))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_a_plugin_with_the_labels_of_the_end_task(
    aang: Aang, kind_files: Path, encoder: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "halves.py").write_text(PLUGIN)
    done = aang(
        *("--plugin", tmp_path / "halves.py", "train", "--model", encoder, "--quiet"),
        *("--train", kind_files / kind / "train.jsonl", "--steps", 1, "--max-length", 32),
        *("--space", "halves/mask/bidirectional/end-task", "--weighter", "static"),
        *("--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err


def test_numbers_have_no_classes_in_the_summary(
    aang: Aang, kind_files: Path, encoder: Path, tmp_path: Path
) -> None:
    """And parts that a run does not have are not named."""
    train = kind_files / "regression" / "train.jsonl"
    done = aang(
        *("train", "--train", train, "--model", encoder, "--weighter", "single-task"),
        *("--steps", 2, "--dry-run", "--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert "classes" not in lines
    assert lines["overlaps"] == "train and dev share no text"


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_measure_the_same(
    kind_options: Callable[[str], dict[str, Any]], kind: str
) -> None:
    """The end task and the objectives over its labels, in the first step.

    Later steps drift apart: AdamW turns rounding near zero into whole steps.
    """
    found: list[Mapping[str, float]] = []
    for engine in ("stream", "packed"):
        trainer = build({**kind_options(kind), "gradients": engine, "dev_head": "own-rows"})
        signals = None
        while signals is None:
            trainer.weighter.round(trainer.bench)
            last = trainer.bench.last
            signals = None if last is None else last.signals
        found.append(signals.cosine)
    # What a kind of task changes: the end task, and objectives over its labels.
    one, other = (
        {name: value for name, value in cosines.items() if name.endswith("end-task")}
        for cosines in found
    )
    assert len(one) > 1
    assert one == pytest.approx(other, abs=1e-3)


def test_a_resumed_training_goes_on_as_if_nothing_had_happened(
    kind_options: Callable[[str], dict[str, Any]],
) -> None:
    """Rows of different width are among what the dev head remembers of words."""
    options = kind_options("token-labels")
    whole, first, second = (build(options) for _ in range(3))
    for _ in range(6):
        whole.weighter.round(whole.bench)
    for _ in range(3):
        first.weighter.round(first.bench)
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        second.weighter.round(second.bench)
    assert second.weighter.weights() == pytest.approx(dict(whole.weighter.weights()), abs=1e-6)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"metric": "rmse"}, r"--metric rmse: .* spearman .* lower; r2"),
        ({"metric": "accuracy"}, "--metric accuracy"),
        (
            {"space": "contrast", "weighter": "static"},
            "supervised-contrast requires end-task:single-label, and this end task is regression",
        ),
    ],
)
def test_what_a_kind_cannot_do_is_refused_with_the_reason(
    kind_options: Callable[[str], dict[str, Any]], more: Mapping[str, Any], said: str
) -> None:
    config = resolve_config({}, {**kind_options("regression"), "set": {}, **more})
    with pytest.raises(ConfigError, match=said):
        prepare_sources(config, load_plugins().registry)


def test_words_have_no_logistic_dev_head(
    kind_options: Callable[[str], dict[str, Any]],
) -> None:
    config = resolve_config({}, {**kind_options("token-labels"), "dev_head_fit": "logistic"})
    with pytest.raises(ConfigError, match="--dev-head-fit logistic"):
        prepare_sources(config, load_plugins().registry)


def test_words_may_be_tagged_from_the_left_alone(
    kind_options: Callable[[str], dict[str, Any]],
) -> None:
    """A tag needs no first token that sees everything; a class of a text does."""
    names = {}
    for kind in ("token-labels", "multi-label"):
        config = resolve_config({}, kind_options(kind))
        sources = prepare_sources(config, load_plugins().registry)
        names[kind] = {str(objective) for objective in sources.plan.objectives}
    assert "task/mask/left-to-right/end-task" in names["token-labels"]
    assert "task/mask/left-to-right/end-task" not in names["multi-label"]


@pytest.mark.parametrize("kind", [{}, {"task_type": "multi-label"}], ids=["read", "given"])
def test_the_default_recipe_gives_way(
    kind: dict[str, str], kind_options: Callable[[str], dict[str, Any]]
) -> None:
    """It contrasts classes; a recipe that the user has named is refused instead."""
    registry = load_plugins().registry
    options = {n: v for n, v in kind_options("multi-label").items() if n not in ("space", "set")}
    del options["weighter"]
    config = resolve_training({}, {**options, **kind}, registry)
    sources = prepare_sources(config, registry)
    assert (config.recipe, sources.config.recipe) == ("contrast", None)
    assert (sources.config.space, sources.config.weighter) == ("td", "factored")
    assert any("default recipe contrast" in note for note in sources.report.notes)
    with pytest.raises(ConfigError, match="end-task:single-label"):
        prepare_sources(resolve_training({}, {**options, "recipe": "contrast"}, registry), registry)
    mine = {"set": {"static": {"end_task_weight": 0.7}}}
    with pytest.raises(ConfigError, match=r"--set static\.…: this run uses no .* 'static'"):
        prepare_sources(resolve_training({}, {**options, **kind, **mine}, registry), registry)
