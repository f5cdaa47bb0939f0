"""What is done about classes of unequal size: weights in the loss, and rows drawn by class."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from aang.config import TrainConfig
from aang.config.schema import BALANCED
from aang.corpora.tokens import TokenRows
from aang_core.errors import ConfigError
from aang_core.plugins.name_table import did_you_mean


def class_weights(
    config: TrainConfig, labels: Sequence[str], train: TokenRows
) -> dict[str, float] | None:
    """The weight of each class in the end task's loss; None without ``--class-weights``.

    Only ratios matter, so they are scaled until the smallest is one. ``balanced`` weighs a class by
    the inverse of its number of training rows.

    Args:
        config: the run's options.
        labels: the classes.
        train: the training rows.

    Raises:
        ConfigError: a class is unknown, or the end task has no single class per row.
    """
    if config.class_weights is None:
        return None
    ids = _single_classes(train, "--class-weights")
    if config.class_weights == BALANCED:
        counts = torch.bincount(ids, minlength=len(labels)).clamp(min=1).tolist()
        weights = {label: 1 / count for label, count in zip(labels, counts, strict=True)}
    else:
        weights = _given(config.class_weights, labels)
    smallest = min(weights.values())
    return {label: weight / smallest for label, weight in weights.items()}


def strata(config: TrainConfig, train: TokenRows) -> Tensor | None:
    """The class of each training row, int64 ``[N]``, for ``--balanced-rows``; None without it.

    Raises:
        ConfigError: the end task has no single class per row.
    """
    return _single_classes(train, "--balanced-rows") if config.balanced_rows else None


def _given(weights: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    for name in weights:
        if name not in labels:
            hint = did_you_mean(name, labels, "the classes are")
            raise ConfigError(f"--class-weights {name}=…: there is no class {name!r}; {hint}")
    return {label: weights.get(label, 1.0) for label in labels}


def _single_classes(train: TokenRows, option: str) -> Tensor:
    labels = train.labels
    if labels is None or labels.dim() != 1 or labels.dtype != torch.int64:
        raise ConfigError(
            f"{option}: is for end tasks with one class per row, and this one has none; leave it "
            "out"
        )
    return labels
