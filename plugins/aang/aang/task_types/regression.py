"""One number a text."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from aang.task_types.cells import Cell, number, text_of
from aang.task_types.names import TaskTypeName
from aang.task_types.task_type import Decoded, EncodedLabels, Errors, HeadShape, Offsets
from aang_core.errors import DataError, ModelError
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses
from aang_core.training.evaluation import Metric

OUTPUT = "value"
"""The name of the only number that the head computes."""

GROUPS = 5
ROWS_OF_A_GROUP = 10


@dataclass(frozen=True)
class Regression:
    """Every text has a number; the loss is the squared error of the standardised number.

    The head learns numbers with a mean of zero and a variance of one, whatever their unit, so that
    the learning rates suit it. The scale is put into its last layer when it is saved.

    Attributes:
        mean: the mean of the training numbers.
        scale: their standard deviation.
    """

    mean: float = 0.0
    scale: float = 1.0

    name: ClassVar[TaskTypeName] = "regression"
    reads_every_token: ClassVar[bool] = False
    metrics: ClassVar[tuple[Metric, ...]] = ("spearman", "pearson", "r2")
    draws: ClassVar[str] = "stratified by fifths of the number"
    baseline: ClassVar[str] = "mean of train"
    labels: ClassVar[tuple[str, ...]] = (OUTPUT,)
    classes: ClassVar[tuple[str, ...]] = ()
    probable: ClassVar[tuple[str, ...]] = ()

    @property
    def head(self) -> HeadShape:
        return HeadShape("sequence-classification", self.labels, "regression")

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        if label.is_null:
            raise label.fault(
                "is null. Every example needs a number: fill it in or remove the example."
            )
        found = number(label.value)
        if found is None:
            blank = isinstance(label.value, str) and not label.value.strip()
            what = "is empty" if blank else f"holds {label.value!r:.60}"
            raise label.fault(
                f"{what}, which is not a finite number such as 1001.5. If the labels are numbers, "
                "correct it or remove the example; if they are names of classes, give "
                f"--task-type single-label. {label.option} names another column."
            )
        return text_of(text), found

    def fitted(
        self, labels: Sequence[Label], source: str, option: str, report: ReadReport
    ) -> "Regression":
        values = torch.tensor([_number(label) for label in labels], dtype=torch.float64)
        if float(values.max()) == float(values.min()):
            raise DataError(
                f"{source}: every example has the number {float(values[0]):g}. Regression needs "
                f"at least two different ones; does {option} name the right column?"
            )
        mean, scale = float(values.mean()), float(values.std(correction=0))
        if not 0 < scale < math.inf:
            raise DataError(
                f"{source}: numbers from {float(values.min()):g} to {float(values.max()):g} have "
                "no standard deviation that a computer can hold. Write them in another unit, such "
                f"as their logarithm, or name another column with {option}."
            )
        return replace(self, mean=mean, scale=scale)

    def names(self, label: Label) -> tuple[str, ...]:
        return ()

    def knowing(self, unseen: Sequence[str]) -> "Regression":
        return self

    def strata(self, labels: Sequence[Label]) -> list[str]:
        """Fifths of the numbers, or fewer parts if they had less than ten examples each."""
        values = [_number(label) for label in labels]
        parts = max(1, min(GROUPS, len(values) // ROWS_OF_A_GROUP))
        ranked = sorted(values)
        bounds = [ranked[len(ranked) * i // parts] for i in range(1, parts)]
        return [str(sum(value >= bound for bound in bounds)) for value in values]

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        if any(label is None for label in labels):
            raise DataError(f"{source}: an example has no number.")
        values = torch.tensor([_number(label) for label in labels], dtype=torch.float64)
        return EncodedLabels(rows=((values - self.mean) / self.scale).float())

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        # Not in half precision, where autocast would leave the difference.
        found = logits.squeeze(-1).to(torch.promote_types(logits.dtype, torch.float32))
        losses = (found - labels.to(found.dtype)).square()
        return RowLosses(losses, torch.ones_like(losses))

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> "Regression":
        return self

    def settings(self) -> Mapping[str, float]:
        return {}

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """Spearman's and Pearson's correlation, R², and RMSE in the data's own unit.

        A correlation with predictions that are all alike is zero. All scores are NaN if a
        prediction is not finite.
        """
        truth, found = labels.double(), logits.squeeze(-1).double()
        if not found.isfinite().all():
            # Ranks of NaN would give a correlation that looks like one of predictions.
            return dict.fromkeys(("spearman", "pearson", "r2", "rmse"), math.nan)
        square = float((truth - found).square().mean())
        spread = float((truth - truth.mean()).square().mean())
        return {
            "spearman": _correlation(_ranks(truth), _ranks(found)),
            "pearson": _correlation(truth, found),
            "r2": 1 - square / spread if spread else 0.0,
            "rmse": math.sqrt(square) * self.scale,
        }

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        truth, found = labels.double(), logits.squeeze(-1).double()
        share = counts / counts.sum(dim=1, keepdim=True)
        square = share @ (truth - found).square()
        centred = truth - truth.mean()
        spread = share @ centred.square() - (share @ centred).square()
        # Of one row many times, rounding leaves a little.
        r2 = torch.where(spread > 1e-12, 1 - square / spread.clamp(min=1e-12), 0.0)
        return {
            "spearman": _correlations(_ranks_in(truth, counts), _ranks_in(found, counts), share),
            "pearson": _correlations(truth, found, share),
            "r2": r2,
            "rmse": square.sqrt() * self.scale,
        }

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        return Errors()

    def counts(self, labels: Tensor) -> dict[str, int]:
        return {}

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        return self.scores(labels, train.mean().expand(len(labels), 1))

    def finish(self, model: Any) -> None:
        """Put the scale into the head's last layer.

        Raises:
            ModelError: the head does not end in a linear layer with one output.
        """
        layer = _output(model)
        with torch.no_grad():
            layer.weight.mul_(self.scale)
            layer.bias.mul_(self.scale).add_(self.mean)
        model.config.label_mean, model.config.label_scale = self.mean, self.scale

    def undo_finish(self, model: Any, config: Any) -> str | None:
        """Take the scale out of the head's last layer.

        Raises:
            ModelError: the head does not end in a linear layer with one output.
        """
        mean = number(getattr(config, "label_mean", None))
        scale = number(getattr(config, "label_scale", None))
        if mean is None or scale is None:
            return "does not say the scale of its numbers"
        nearly = 1e-6 * self.scale
        if abs(mean - self.mean) > nearly or abs(scale - self.scale) > nearly:
            return f"is for another scale: mean {mean:g}, standard deviation {scale:g}"
        layer = _output(model)
        with torch.no_grad():
            layer.bias.sub_(self.mean).div_(self.scale)
            layer.weight.div_(self.scale)
        return None

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        return [Decoded(value) for value in logits.squeeze(-1).float().cpu().tolist()]


def _output(model: Any) -> Any:
    linear = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1]
    if not linear or linear[-1].bias is None:
        raise ModelError(
            f"the head of {type(model).__name__} does not end in a linear layer with one "
            "output and a bias, so it cannot learn numbers; use another encoder, such as BERT "
            "or RoBERTa"
        )
    return linear[-1]


def _number(label: Label | None) -> float:
    assert isinstance(label, float)  # what `read` returned
    return label


def _ranks(values: Tensor) -> Tensor:
    """The rank of each value; equal values share the mean of theirs."""
    _, group, sizes = values.unique(return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    means: Tensor = last - (sizes - 1) / 2
    return means.index_select(0, group)


def _correlation(one: Tensor, other: Tensor) -> float:
    one, other = one - one.mean(), other - other.mean()
    both = float(one.norm() * other.norm())
    # Rounding leaves a little of values that are all alike.
    return float(one @ other) / both if both > 1e-12 else 0.0


def _ranks_in(values: Tensor, counts: Tensor) -> Tensor:
    """`_ranks` of the values in each resample ``[R, N]``, given how often it has each."""
    _, group, _ = values.unique(return_inverse=True, return_counts=True)
    sizes = counts.new_zeros(len(counts), int(group.max()) + 1).index_add_(1, group, counts)
    means = sizes.cumsum(dim=1) - (sizes - 1) / 2
    return means.index_select(1, group)


def _correlations(one: Tensor, other: Tensor, share: Tensor) -> Tensor:
    """`_correlation` in each resample ``[R]``, given the share of it that each value has."""
    one = one - (share * one).sum(dim=1, keepdim=True)
    other = other - (share * other).sum(dim=1, keepdim=True)
    squares = (share * one.square()).sum(dim=1) * (share * other.square()).sum(dim=1)
    both = squares.sqrt()
    return torch.where(both > 1e-12, (share * one * other).sum(dim=1) / both.clamp(min=1e-12), 0.0)
