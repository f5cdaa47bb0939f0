"""The options of MT-TARTAN and META-TARTAN as the authors' scripts set them, and their grids."""

from collections.abc import Mapping
from typing import Any

SPACE = "dapt+tapt"
"""Both auxiliary tasks of table 2, beside the end task."""

MT_TARTAN: Mapping[str, Any] = {
    "space": SPACE,
    "weighter": "static",
    "max_length": 512,
    "batch_size": 128,
    # Only META-TARTAN uses it; it is here so that all rows are scaled together.
    "dev_batch_size": 128,
    # A batch as large as the end task's for each of the two auxiliary tasks.
    "aux_batch_size": 256,
    "draws_per_step": 2,
    "steps": 19_650,
    "eval_every": 30,
    "patience": 20,
    "lr": 1e-4,
    "head_lr": 1e-3,
    "head_dropout": 0.1,
    "head_weight_decay": 0.1,
    "adam_eps": 1e-6,
    "clip_apart": True,
}
"""The budget is 150 epochs of the largest text, 150 ⌊N / 128⌋ steps: here of ten times ACL-ARC's
1,688 texts. Training mostly stops long before, by its patience; the rates decay over all of it."""

META_TARTAN: Mapping[str, Any] = {
    **MT_TARTAN,
    "weighter": "meta-tartan",
    "dev_head": "drawn",
    "dev_head_rows": 32,
    "dev_head_lr": 1e-3,
    "set": {"meta-tartan": {"lr": 1e-2}},
}

MT_GRID: Mapping[str, tuple[Any, ...]] = {
    "batch_size": (128, 256, 512),
    "head_lr": (1e-3, 1e-4, 1e-5),
    "head_dropout": (0.1, 0.3),
    "lr": (1e-4,),
}
"""Section 4 names one set of rates; the scripts keep the body at 1e-4, so it is the heads'."""

META_GRID: Mapping[str, tuple[Any, ...]] = {
    **MT_GRID,
    "meta-tartan.lr": (1e-1, 5e-2, 3e-2, 1e-2),
    "dev_head_rows": (16, 32),
}

ONE_TASK_GRID: Mapping[str, tuple[Any, ...]] = {
    "meta-tartan.lr": (1.0, 0.1, 0.01),
    "head_lr": (1e-3, 1e-4, 5e-5),
    "lr": (1e-4,),
}
"""For AANG's baselines with one auxiliary task, whose only weight is λ_e."""
