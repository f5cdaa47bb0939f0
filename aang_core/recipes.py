"""Recipes: the papers' baselines, each by one name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aang_core.errors import UnknownNameError
from aang_core.registry import did_you_mean


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
    "multitask": Recipe("all objectives with fixed, equal weights", (), {"weighter": "static"}),
    "static-td": Recipe(
        "the space td with fixed, equal weights (AANG, section 6)",
        (),
        {"space": "td", "weighter": "static"},
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
