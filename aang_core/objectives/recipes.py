"""Recipes: the papers' systems and baselines, each by one name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aang_core.errors import UnknownNameError
from aang_core.plugins.registry import did_you_mean


@dataclass(frozen=True)
class Recipe:
    """What a name for a whole way of training stands for.

    pretraining: named objectives that the encoder is trained on first, each alone and in turn.
    options: what the recipe sets of the options of a training; any of them can be overridden.
    """

    summary: str
    pretraining: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


_FINE_TUNING = {"weighter": "single-task"}

_PUBLISHED: Mapping[str, Any] = {
    "weighter": "factored",
    "max_length": 512,
    "batch_size": 128,
    "dev_batch_size": 128,
    "draws_per_step": 4,
    "weights_every": 3,
    "eval_every": 30,
    "patience": 20,
    "lr": 1e-4,
    "adam_eps": 1e-6,
    "task_clip": 10.0,
    "clip_apart": True,
    "dev_head": "drawn",
    "dev_head_rows": 32,
    "head_dropout": 0.3,
    "head_weight_decay": 0.1,
    "share_decoder": False,
}
"""What the authors' code sets for AANG-TD and AANG-TD+ED alike.

Signals are measured in every step, and the weights learn after every third from the mean of three
(``step_meta_every``). The budget there is 150 epochs, 150 ⌊⌊N / b⌋ / 4⌋ steps for N texts of the
space's data and b = 64 auxiliary rows a draw (256 for AANG-TD+ED): on ACL-ARC 900, or 2,700 with
ten times as much in-domain text.
"""

_PUBLISHED_WEIGHTS: Mapping[str, Any] = {"lr": 1.0, "end_task_lr": 0.1, "scaling": "released"}
"""Of the rates in appendix D those that tables 5 and 6 share; the grid ``paper-td`` has more."""

RECIPES: Mapping[str, Recipe] = {
    "tapt": Recipe(
        "pre-train on the task's own text, then fine-tune (Gururangan et al., 2020)",
        ("tapt",),
        _FINE_TUNING,
    ),
    "dapt": Recipe(
        "pre-train on in-domain text, then fine-tune (Gururangan et al., 2020)",
        ("dapt",),
        _FINE_TUNING,
    ),
    "dapt+tapt": Recipe(
        "pre-train on in-domain text, then on the task's own, then fine-tune",
        ("dapt", "tapt"),
        _FINE_TUNING,
    ),
    "contrast": Recipe(
        "supervised contrast on the end task's own rows, for half of the loss (Gunel et al., 2021)",
        (),
        {
            "space": "contrast",
            "weighter": "static",
            "set": {"static": {"end_task_weight": 0.5}},
        },
    ),
    "multitask": Recipe(
        "all objectives in every step, each weighing as much as the end task: MT-TARTAN, "
        "λ_e = 1/(n + 1) (TARTAN, section 3.1)",
        (),
        {"weighter": "static"},
    ),
    "static-td": Recipe(
        "n = 3 objectives of td sampled a step, 1/n each, λ_e = 0.5: Static Multitask-TD (AANG, "
        "section 7.3)",
        (),
        {
            "space": "td",
            "weighter": "static",
            "set": {"static": {"n": 3, "end_task_weight": 0.5}},
        },
    ),
    "aang-td": Recipe(
        "AANG-TD as the authors' code trains it",
        (),
        {
            **_PUBLISHED,
            "space": "td",
            "steps": 900,
            "aux_batch_size": 256,
            "head_lr": 1e-3,
            "set": {"factored": {**_PUBLISHED_WEIGHTS, "n": 3, "scaling_rows": 64}},
        },
    ),
    "aang-td+ed": Recipe(
        "AANG-TD+ED as the authors' code trains it",
        (),
        {
            **_PUBLISHED,
            "space": "td+ed",
            "steps": 2700,
            "aux_batch_size": 1024,
            "head_lr": 1e-4,
            "set": {"factored": {**_PUBLISHED_WEIGHTS, "n": 6, "scaling_rows": 256}},
        },
    ),
    "gpt-style": Recipe(
        "AANG's baseline X: META-TARTAN with that objective",
        (),
        {"space": "gpt-style", "weighter": "meta-tartan"},
    ),
    "xlnet-style": Recipe(
        "AANG's baseline Y: META-TARTAN with that objective",
        (),
        {"space": "xlnet-style", "weighter": "meta-tartan"},
    ),
    "bert-style": Recipe(
        "AANG's baseline Z: META-TARTAN with that objective",
        (),
        {"space": "bert-style", "weighter": "meta-tartan"},
    ),
    "x+y+z": Recipe(
        "the three together, factored (AANG, table 2)",
        (),
        {"space": "x+y+z", "weighter": "factored"},
    ),
}
"""Every recipe by its name."""


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        UnknownNameError: there is none; the message offers near names.
    """
    if name not in RECIPES:
        hint = did_you_mean(name, RECIPES, "the recipes are")
        raise UnknownNameError(f"--recipe {name}: there is no such recipe; {hint}")
    return RECIPES[name]
