"""Choosing a training's dev head from its options."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from aang_core.gradients.dev_head import (
    ROWS,
    DevAverage,
    DevHead,
    DrawnDevHead,
    EndTaskHead,
    FreshDevHead,
    RememberingDevHead,
)
from aang_core.gradients.logistic_head import LogisticDevHead
from aang_core.gradients.passes import Passes, Precision

DevHeadRows = Literal["remembered", "drawn", "own-rows", "end-task"]
"""What the dev head is fitted to: end-task rows of earlier steps, rows drawn for it, or the step's
own rows. ``"end-task"`` fits nothing and takes the end task's own head."""

DevHeadFit = Literal["adamw", "logistic"]
"""How it is fitted: a few steps of AdamW from random weights, or penalised logistic regression."""


@dataclass(frozen=True)
class DevHeadSettings:
    """Options of the dev head.

    Attributes:
        kind: which rows it is fitted to.
        rows: number of remembered or drawn rows.
        fit: how it is fitted.
        iterations: iterations of AdamW.
        lr: learning rate of AdamW.
        weight_decay: weight decay of AdamW.
        average: β of the running mean of the dev gradient over steps; 0 for no mean.
    """

    kind: DevHeadRows = "remembered"
    rows: int = ROWS
    fit: DevHeadFit = "adamw"
    iterations: int = 10
    lr: float = 1e-2
    weight_decay: float = 0.1
    average: float = 0.0


def choose_dev_head(
    settings: DevHeadSettings,
    body: nn.Module,
    generator: torch.Generator,
    *,
    precision: Precision = "fp32",
    keep: Callable[[Tensor], Tensor] = lambda features: features,
) -> DevHead:
    """Make the dev head that the options ask for.

    Args:
        settings: the options.
        body: the module that all tasks share.
        generator: source of the head's random weights.
        precision: of the pass over drawn rows.
        keep: selects the part of features ``[B, ...]`` that a head reads; only that is remembered.
    """
    fitted = _fitted(settings, generator, keep)
    head: DevHead
    if settings.kind == "end-task":
        head = EndTaskHead()
    elif settings.kind == "own-rows":
        head = fitted
    elif settings.kind == "drawn":
        head = DrawnDevHead(fitted, Passes(body, precision), settings.rows)
    else:
        head = RememberingDevHead(fitted, settings.rows, keep)
    if settings.average:
        head.average = DevAverage(body, settings.average)
    return head


def _fitted(
    settings: DevHeadSettings, generator: torch.Generator, keep: Callable[[Tensor], Tensor]
) -> DevHead:
    if settings.fit == "logistic":
        return LogisticDevHead(keep)
    return FreshDevHead(
        generator,
        iterations=settings.iterations,
        lr=settings.lr,
        weight_decay=settings.weight_decay,
    )
