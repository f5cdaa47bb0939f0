"""The options of AANG-TD and its relatives as the authors' code sets them."""

from collections.abc import Mapping
from typing import Any

_BOTH: Mapping[str, Any] = {
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
"""The options that the code sets for both.

Signals are measured in every step, and the weights learn after every third from the mean of three
(``step_meta_every``). The budget there is 150 epochs, 150 ⌊⌊N / b⌋ / 4⌋ steps for N texts of the
space's data and b = 64 auxiliary rows a draw (256 for AANG-TD+ED): on ACL-ARC 900, or 2,700 with
ten times as much in-domain text.
"""

_WEIGHTS: Mapping[str, Any] = {"lr": 1.0, "end_task_lr": 0.1, "scaling": "released"}
"""The rates of appendix D that tables 5 and 6 share; the grid ``paper-td`` has more."""

_PAIRS: Mapping[str, Any] = {"random-factorized": {"pairs": 0.6}}
"""The code keeps pairs of tokens at random, where the paper has an order."""

AANG_TD: Mapping[str, Any] = {
    **_BOTH,
    "space": "td",
    "steps": 900,
    "aux_batch_size": 256,
    "head_lr": 1e-3,
    "set": {"factored": {**_WEIGHTS, "n": 3, "scaling_rows": 64}, **_PAIRS},
}

AANG_TD_ED: Mapping[str, Any] = {
    **_BOTH,
    "space": "td+ed",
    "steps": 2700,
    "aux_batch_size": 1024,
    "head_lr": 1e-4,
    "set": {"factored": {**_WEIGHTS, "n": 6, "scaling_rows": 256}, **_PAIRS},
}


def _with(recipe: Mapping[str, Any], factored: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """A recipe with some options replaced; ``factored`` are those of its weighter."""
    sets = {**recipe["set"], "factored": {**recipe["set"]["factored"], **factored}}
    return {**recipe, **options, "set": sets}


STATIC_TD: Mapping[str, Any] = _with(AANG_TD, {"lr": 0.0, "end_task_lr": 0.0})
"""Static Multitask-TD (section 7.3): in the code it is AANG-TD whose weights do not move."""

HYPERPARTISAN_TD: Mapping[str, Any] = _with(
    AANG_TD,
    # A draw of a quarter of the rows.
    {"scaling_rows": 32},
    batch_size=64,
    dev_batch_size=64,
    aux_batch_size=128,
    dev_head_rows=8,
    steps=600,
    metric="accuracy",
)
"""Appendix D gives the 64 and the 8, and the code the 128 rows; 515 texts make 600 steps."""
