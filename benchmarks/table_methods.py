"""The methods of ``benchmarks.does_it_help``, as options of ``aang compare``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aang.config import TrainConfig

from benchmarks.first_look import CONTRAST_OWN, HALF, THIRDS
from benchmarks.first_look import METHODS as FIRST_METHODS

Methods = dict[str, dict[str, Any]]

STAGE_STEPS = {"steps": 200, "batch_size": 32}
"""Options of each stage of pre-training that a recipe puts before fine-tuning."""
_SPACES = Path(__file__).parent / "spaces"
_STATIC = {"weighter": "static", "batch_size": 32, "aux_batch_size": 32, "set": HALF}
_CONTRAST_AND_VIEWS = {
    "weighter": "static",
    "space": str(_SPACES / "contrast-and-views.yaml"),
    "aux_batch_size": 32,
    # Half of the rest goes to contrast, and the other half to eight objectives on changed texts.
    "set": {"static": {"end_task_weight": 0.5, "weights": {CONTRAST_OWN: 8}}},
}
_FACTORED = FIRST_METHODS["factored-td"]

METHODS: Methods = {
    name: FIRST_METHODS[name]
    for name in (
        "single-task",
        "single-task-96",
        "contrast",
        "factored-td+c",
        "factored-td",
    )
} | {
    "static-td": {**_STATIC, "space": "td"},
    "static-td-labels": {**_STATIC, "space": "td-labels"},
    "meta-tartan": {"weighter": "meta-tartan", "space": "tapt", "meta_every": 4, **THIRDS},
    "tapt": {
        "recipe": "tapt",
        "batch_size": 64,
        "set": {"tapt": STAGE_STEPS},
    },
    "dapt+tapt": {
        "recipe": "dapt+tapt",
        "batch_size": 64,
        "set": {"dapt": STAGE_STEPS, "tapt": STAGE_STEPS},
    },
    "tapt+contrast": {
        "recipe": "tapt",
        "weighter": "static",
        "space": "contrast",
        "batch_size": 64,
        "set": {**HALF, "tapt": STAGE_STEPS},
    },
    "factored-td+ed": {"weighter": "factored", "space": "td+ed", "meta_every": 4, **THIRDS},
    "aang-td": {"recipe": "aang-td", "scale_rows": 0.25},
    "aang-td-remembered": {
        "recipe": "aang-td",
        "scale_rows": 0.25,
        "dev_head": "remembered",
        "dev_head_rows": 256,
    },
    "contrast-96": {"recipe": "contrast", "batch_size": 96},
    "contrast+views": {**_CONTRAST_AND_VIEWS, "batch_size": 32},
    "contrast+views-96": {**_CONTRAST_AND_VIEWS, "batch_size": 64},
}
"""The methods of the table."""

_RATES_AND_LENGTH = {
    name: TrainConfig.model_fields[name].default for name in ("lr", "head_lr", "max_length")
}


def _with_defaults(method: Mapping[str, Any]) -> dict[str, Any]:
    """The method with default rates and length and half of the rows: 32 for plain fine-tuning,
    its default, and as many for what it is compared with."""
    halved = {
        name: method[name] / 2 if name == "scale_rows" else method[name] // 2
        for name in ("batch_size", "dev_batch_size", "aux_batch_size", "scale_rows")
        if name in method
    }
    return {**method, **halved, **_RATES_AND_LENGTH}


_BESIDE_THE_TABLE = ("contrast+views", "contrast+views-96")
HALVED = {
    f"{name.replace('-96', '-48')}-defaults": name
    for name in METHODS
    if name not in _BESIDE_THE_TABLE
}
"""For each method, the one of whose rows it has half."""

DEFAULTS: Methods = {
    **{name: _with_defaults(METHODS[whole]) for name, whole in HALVED.items()},
    # The published system with all of its rows.
    "aang-td-full-defaults": {"recipe": "aang-td", **_RATES_AND_LENGTH},
    **{
        f"{name}+mean-defaults": {**_with_defaults(METHODS[name]), "mean_layer": True}
        for name in ("single-task", "contrast")
    },
}
"""The same with the defaults of ``aang train``: 32 rows a step for plain fine-tuning and contrast,
lower rates and longer texts. Twice as many steps read as many rows."""

DEMO_BY_DEFAULT: Methods = {
    f"{name}-defaults": {**METHODS[name], "batch_size": DEFAULTS[f"{name}-defaults"]["batch_size"]}
    for name in ("single-task", "contrast")
}
"""The same for the demo, which has rates of its own."""

_READ_DOMAIN = ("dapt+tapt", "factored-td+ed")
READ_DOMAIN = (*_READ_DOMAIN, *(n for n, whole in HALVED.items() if whole in _READ_DOMAIN))
"""The methods that read text of the field."""

CHANGES: Methods = {
    "own-rows-head": {**_FACTORED, "dev_head": "own-rows"},
    "end-task-head": {**_FACTORED, "dev_head": "end-task"},
    "task-clip": {**_FACTORED, "task_clip": 1.0},
    "logistic-head": {**_FACTORED, "dev_head_fit": "logistic"},
    "n-1": {**_FACTORED, "set": {"factored": {"n": 1}}},
    "n-12": {**_FACTORED, "set": {"factored": {"n": 12}}},
    "denoise": {**_FACTORED, "space": str(_SPACES / "td-denoise.yaml")},
    "end-task": {**_FACTORED, "space": "td-labels"},
    "static": METHODS["static-td"],
    "static-denoise": {**_STATIC, "space": str(_SPACES / "td-denoise.yaml")},
    "static-end-task": METHODS["static-td-labels"],
}
"""``factored-td`` with one thing changed, and the same with fixed weights."""

_SENTENCES = ("bidirectional", "random-factorized")
"""The representations of td that can be classified."""

OBJECTIVES = {
    f"{transform}.{representation}.{output}": f"task/{transform}/{representation}/{output}"
    for transform in ("bert-op", "mask", "replace", "no-op")
    for representation in ("bidirectional", "left-to-right", "right-to-left", "random-factorized")
    for output in ("denoise", "end-task")
    if output == "denoise" or representation in _SENTENCES
}
"""The objectives of td by the name that each has as a method; names of methods have no slash."""

ALONE: Methods = {name: {**_STATIC, "space": o} for name, o in OBJECTIVES.items()}
"""Each objective of td alone beside the end task, with half of the loss."""

ALONE_BY_DEFAULT: Methods = {
    "single-task-defaults": DEFAULTS["single-task-defaults"],
    **{name: _with_defaults(method) for name, method in ALONE.items()},
}
"""The same with the defaults of ``aang train``, and plain fine-tuning."""

CHANGES_BY_DEFAULT: Methods = {
    "factored-td-defaults": DEFAULTS["factored-td-defaults"],
    **{
        name: _with_defaults(method)
        for name, method in CHANGES.items()
        if method not in METHODS.values()
    },
}
"""``factored-td`` and its changes with the defaults of ``aang train``, without the two that are in
:data:`DEFAULTS`, as ``static-td-defaults`` and ``static-td-labels-defaults``.
"""

LONGER: Methods = {
    name: DEFAULTS[name]
    for name in (
        "single-task-defaults",
        "contrast-defaults",
        "tapt-defaults",
        "static-td-defaults",
        "factored-td-defaults",
    )
}
"""Methods that 400 steps may have stopped too early, as rates fall to zero, and leading ones."""

_ROWS = {
    "tapt": 96,
    "tapt+contrast": 96,
    "dapt+tapt": 128,
    "aang-td": 256,
    "aang-td-remembered": 128,
}
"""Rows per step of methods with stages of pre-training, or with a recipe's rows."""
_HALVED_ROWS = {name: _ROWS[whole] // 2 for name, whole in HALVED.items() if whole in _ROWS}
# Half of the rows, but still a dev head of 32 rows in each of four draws.
_ALL_ROWS = _ROWS | _HALVED_ROWS | {"aang-td-defaults": 192, "aang-td-full-defaults": 640}


def rows_of_a_step(methods: Mapping[str, Mapping[str, Any]], name: str) -> int:
    """Rows of a step of the method, those of stages of pre-training and of dev included."""
    if name in _ALL_ROWS:
        return _ALL_ROWS[name]
    options = methods[name]
    # Dev rows are read in the steps that measure.
    dev = options.get("dev_batch_size", 0) // options.get("meta_every", 1)
    rows: int = options["batch_size"] + options.get("aux_batch_size", 0) + dev
    return rows
