"""The recipes that do what the authors' code does: every number, and how to override it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from aang_core import ConfigError, ModelError, load_plugins
from tests.core.encoders import tiny_text_model
from tests.support.model import LanguageModelHead, set_dropout
from tests.support.runs import assemble, build_trainer, prepare_sources, resolve_config
from tests.training.conftest import Aang

REGISTRY = load_plugins(environ={}).registry

PUBLISHED: dict[str, Any] = {
    "weighter": "factored",
    "max_length": 512,
    "batch_size": 128,
    "dev_batch_size": 128,
    "draws_per_step": 4,
    "meta_every": 1,
    "weights_every": 3,
    "eval_every": 30,
    "patience": 20,
    "lr": 1e-4,
    "weight_decay": 0.01,
    "warmup": 0.06,
    "max_grad_norm": 1.0,
    "adam_eps": 1e-6,
    "task_clip": 10.0,
    "clip_apart": True,
    "dev_head": "drawn",
    "dev_head_rows": 32,
    "head_dropout": 0.3,
    "head_weight_decay": 0.1,
    "share_decoder": False,
    "final_fine_tuning": None,
}
RECIPES: dict[str, dict[str, Any]] = {
    "aang-td": {
        **PUBLISHED,
        "space": "td",
        "steps": 900,
        "aux_batch_size": 256,
        "head_lr": 1e-3,
        "set": {
            "factored": {
                "lr": 1.0,
                "end_task_lr": 0.1,
                "n": 3,
                "scaling": "released",
                "scaling_rows": 64,
            },
            "random-factorized": {"pairs": 0.6},
        },
    },
    "aang-td+ed": {
        **PUBLISHED,
        "space": "td+ed",
        "steps": 2700,
        "aux_batch_size": 1024,
        "head_lr": 1e-4,
        "set": {
            "factored": {
                "lr": 1.0,
                "end_task_lr": 0.1,
                "n": 6,
                "scaling": "released",
                "scaling_rows": 256,
            },
            "random-factorized": {"pairs": 0.6},
        },
    },
}


def like_aang_td(factored: dict[str, Any], **options: Any) -> dict[str, Any]:
    known = RECIPES["aang-td"]
    sets = {**known["set"], "factored": {**known["set"]["factored"], **factored}}
    return {**known, **options, "set": sets}


RECIPES["static-td-released"] = like_aang_td({"lr": 0.0, "end_task_lr": 0.0})
RECIPES["aang-td-hyperpartisan"] = like_aang_td(
    {"scaling_rows": 32},
    **{"batch_size": 64, "dev_batch_size": 64, "aux_batch_size": 128, "dev_head_rows": 8},
    **{"steps": 600, "metric": "accuracy"},
)
RECIPES["tartan-mt"] = {
    "weighter": "static",
    "space": "dapt+tapt",
    "max_length": 512,
    "batch_size": 128,
    "aux_batch_size": 256,
    "draws_per_step": 2,
    "steps": 19_650,
    "eval_every": 30,
    "patience": 20,
    "lr": 1e-4,
    "head_lr": 1e-3,
    "weight_decay": 0.01,
    "head_weight_decay": 0.1,
    "head_dropout": 0.1,
    "warmup": 0.06,
    "adam_eps": 1e-6,
    "clip_apart": True,
    "set": {},
}
RECIPES["tartan-meta"] = {
    **RECIPES["tartan-mt"],
    "weighter": "meta-tartan",
    "dev_batch_size": 128,
    "dev_head": "drawn",
    "dev_head_rows": 32,
    "dev_head_lr": 1e-3,
    "dev_head_steps": 10,
    "dev_head_weight_decay": 0.1,
    "weights_every": 1,
    "set": {"meta-tartan": {"lr": 1e-2}},
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_number(recipe: str) -> None:
    """Also on the demo, which has its own defaults for learning rates and steps."""
    for data in ({}, {"train": Path("train.jsonl")}):
        config = resolve_config({}, {"recipe": recipe, **data}, REGISTRY)
        assert {name: getattr(config, name) for name in RECIPES[recipe]} == RECIPES[recipe]


@pytest.mark.parametrize(
    ("recipe", "scale", "rows"),
    [
        ("aang-td", 0.25, (32, 32, 64)),
        ("aang-td", 0.5, (64, 64, 128)),
        ("aang-td", 0.03, (4, 4, 8)),  # 3.84, 3.84 and 7.68
        ("aang-td+ed", 0.25, (32, 32, 256)),
        (None, 3.0, (96, 96, 96)),
        (None, 0.01, (1, 1, 1)),  # at least one
        (None, 0.078125, (3, 3, 3)),  # 2.5 is rounded up
    ],
)
def test_rows_are_scaled_together(
    recipe: str | None, scale: float, rows: tuple[int, int, int]
) -> None:
    config = resolve_config({}, {"recipe": recipe, "scale_rows": scale}, REGISTRY)
    assert (config.batch_size, config.dev_batch_size, config.aux_batch_size) == rows
    # What a run folder holds resolves to the same: rows that are given are taken as they are.
    saved = config.model_dump(mode="json", exclude={"out", "trust_remote_code"})
    assert resolve_config(saved, {}, REGISTRY) == config


def test_anything_that_is_given_wins() -> None:
    config = resolve_config(
        {"recipe": "aang-td", "set": {"factored": {"n": 6}}, "dev_batch_size": 16},
        {"scale_rows": 0.25, "patience": 5, "set": {"factored": {"lr": 0.1}}},
        REGISTRY,
    )
    assert (config.batch_size, config.dev_batch_size, config.aux_batch_size) == (32, 16, 64)
    assert config.patience == 5
    assert config.set["factored"] == {
        "lr": 0.1,
        "end_task_lr": 0.1,
        "n": 6,
        "scaling": "released",
        "scaling_rows": 64,
    }
    other = resolve_config({}, {"recipe": "aang-td", "weighter": "single-task"}, REGISTRY)
    assert "factored" not in other.set, "options of a weighter that does not train are of no use"
    assert prepare_sources(other, REGISTRY).plan.objectives == (), "and those of its space"
    static = resolve_config({}, {"recipe": "static-td"}, REGISTRY)
    assert static.set == {"static": {"n": 3, "end_task_weight": 0.5}}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"recipe": "aang-td", "scale_rows": 0.01}, "--batch-size 1 is less than one row for each"),
        ({"draws_per_step": 4, "aux_batch_size": 3}, "--aux-batch-size 3 is less than one row"),
        ({"scale_rows": 0}, "--scale-rows 0"),
        ({"scale_rows": "half"}, "--scale-rows 'half'"),
        ({"recipe": "aang-td", "set": {"factored": 3}}, "--set"),
    ],
)
def test_bad_input(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve_config(options, {}, REGISTRY)


def test_a_weighter_with_rounds_of_its_own_is_told_that_it_has_no_draws(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--weighter", "diw", "--draws-per-step", 2, "--out", run)
    )
    assert done.status == 2
    assert "--draws-per-step 2: a round of --weighter diw is no step" in done.err
    assert not run.exists()


def test_what_heads_are_trained_with(options: dict[str, Any]) -> None:
    """Dropout in every classification head and in no other, decay and rates of their own."""
    config = resolve_config(
        {}, {**options, "recipe": "aang-td", "scale_rows": 1.0, "steps": 2}, REGISTRY
    )
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, REGISTRY))
    trainer = build_trainer(assembly, torch.device("cpu"))

    def dropouts(module: nn.Module) -> set[float]:
        return {m.p for m in module.modules() if isinstance(m, nn.Dropout)}

    assert dropouts(assembly.model.classifier) == {0.3}
    assert dropouts(assembly.model.body) == {0.1}
    kinds = set()
    for task in assembly.auxiliaries:
        kinds.add(type(task.head))
        assert dropouts(task.head) <= (
            {0.1} if isinstance(task.head, LanguageModelHead) else {0.3}
        ), task.name
    assert len(kinds) == 2
    assert assembly.model.classifier.model.config.classifier_dropout is None
    groups = trainer.bench.optimization.optimizer.param_groups
    assert [(g["initial_lr"], g["weight_decay"], g["eps"]) for g in groups] == [
        (1e-4, 0.01, 1e-6),
        (1e-4, 0.0, 1e-6),
        (1e-3, 0.1, 1e-6),
        (1e-3, 0.0, 1e-6),
    ]
    body = {id(p) for p in assembly.model.body.parameters()}
    assert not body & {id(p) for t in assembly.auxiliaries for p in t.head.parameters()}


def test_a_head_without_dropout_is_told(tmp_path: Path) -> None:
    model = tiny_text_model(tmp_path, tied=True)
    model.classifier.model.dropout = nn.Identity()
    with pytest.raises(ModelError, match=r"head of BertForSequenceClassification has no dropout"):
        set_dropout(model.classifier, 0.3)


@pytest.mark.full
def test_a_tiny_run_on_the_demo(aang: Aang, tmp_path: Path) -> None:
    """Six steps of four draws, the weights moved after the third and the sixth."""
    run = tmp_path / "run"
    done = aang(
        *("train", "--recipe", "aang-td", "--scale-rows", 0.03, "--steps", 6, "--max-length", 16),
        *("--quiet", "--out", run),
    )
    assert done.status == 0, done.err
    lines = [json.loads(line) for line in (run / "weights.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    moved = [line["factors"]["transform"] for line in lines]
    assert moved[0] == moved[1] != moved[2] == moved[3] == moved[4] != moved[5]
    for line in lines:
        coefficients = line["coefficients"]
        # Three of 24 objectives, four times; some may be drawn again.
        assert 3 <= len(coefficients) - 1 <= 12
        assert set(coefficients) == set(line["cosines"])
        auxiliary = sum(c for name, c in coefficients.items() if name != "end-task")
        # From a third, where no two share their rows, to all of them.
        assert 0.3 < auxiliary / (1 - coefficients["end-task"]) <= 1.0
    assert lines[0]["coefficients"]["end-task"] == 0.5
    result = json.loads((run / "result.json").read_text())
    assert result["recipe"] == "aang-td"
    assert result["objectives"] == 24
