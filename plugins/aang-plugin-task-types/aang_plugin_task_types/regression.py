"""One number a text."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from aang.task_types import (
    Cell,
    Decoded,
    EncodedLabels,
    Label,
    LabelColumn,
    Metric,
    Offsets,
    TaskType,
    number,
    spells_missing,
    text_of,
)
from torch import Tensor, nn

from aang_core import DataError, ModelError, ReadReport, RowLosses

OUTPUT = "value"
"""The name of the only number that the head computes."""

GROUPS = 5
ROWS_OF_A_GROUP = 10

_NUMERAL = re.compile(
    r"[+-]?(\d{1,3}([ ,.'_]\d{3})+|\d+)?([.,]\d+)?\s*%?|[+-]?inf(inity)?", re.IGNORECASE
)


@dataclass(frozen=True)
class Regression(TaskType):
    """Every text has a number; the loss is the squared error of the standardised number.

    The head learns numbers with a mean of zero and a variance of one, whatever their unit, so that
    the learning rates suit it. The scale is put into its last layer when it is saved.

    Attributes:
        mean: the mean of the training numbers.
        scale: their standard deviation.
    """

    labels: tuple[str, ...] = field(default=(OUTPUT,), init=False)
    mean: float = 0.0
    scale: float = 1.0

    name: ClassVar[str] = "regression"
    model: ClassVar[str] = "A model that gives texts a number"
    metrics: ClassVar[tuple[Metric, ...]] = ("spearman", "pearson", "r2")
    baseline: ClassVar[str] = "mean of train"
    label_form: ClassVar[str] = "a finite number"
    draws: ClassVar[str] = "stratified by fifths of the number"
    names_classes: ClassVar[bool] = False
    problem_type: ClassVar[str | None] = "regression"
    linear: ClassVar[str | None] = "ridge regression"

    @classmethod
    def recognises(cls, column: LabelColumn, report: ReadReport) -> str | None:
        """Whether most labels are numbers, not all of them whole.

        Cells that are missing or written differently are refused when they are read, because one
        such cell must not turn numbers into names of classes.
        """
        found = [one for one in map(number, column.filled) if one is not None]
        others = [label for label in column.filled if number(label) is None]
        spoilt = all(spoils_numbers(label) for label in others)
        if not any(one % 1 for one in found) or not (spoilt or len(found) > len(others)):
            written = [x for x in others if isinstance(x, str) and not spells_missing(x)]
            if spoilt and written:
                report.note(
                    f"column {column.name!r} holds numbers such as {written[0]!r}, which are read "
                    "as names of classes; write them as 2.5, without commas, spaces or percent "
                    "signs, for regression"
                )
            return None
        if column.declares_names:
            if spoilt:
                report.note(
                    f"column {column.name!r} holds numbers written as text, which are names of "
                    "classes; --task-type regression reads them as numbers"
                )
            return None
        return "numbers that are not whole"

    @classmethod
    def of_model(cls, config: Any, labels: tuple[str, ...]) -> Self | None:
        return cls() if config.problem_type == cls.problem_type or len(labels) == 1 else None

    def holds(self, label: object) -> bool:
        return isinstance(label, int | float) and number(label) is not None

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        found = number(label.value)
        if found is None:
            raise label.fault(
                f"holds {label.value!r:.60}, which is not a finite number such as 1001.5. If the "
                "labels are numbers, correct it or remove the example; if they are names of "
                f"classes, train with --task-type single-label. {label.option} names another "
                "column."
            )
        return text_of(text), found

    def fitted(self, labels: Sequence[Label], source: str, option: str, report: ReadReport) -> Self:
        values = torch.tensor(labels, dtype=torch.float64)
        if float(values.max()) == float(values.min()):
            raise DataError(
                f"{source}: every example has the number {float(values[0]):g}. Regression needs "
                f"at least two different ones; does {option} name the right column?"
            )
        mean, scale = float(values.mean()), float(values.std(correction=0))
        # The scale goes into the weights of the saved model, which have seven digits.
        if not abs(mean) / 1e6 < scale < math.inf:
            raise DataError(
                f"{source}: numbers from {float(values.min()):.12g} to {float(values.max()):.12g} "
                "differ by too little or too much to be computed with. Write them in another unit, "
                "such as their logarithm or their distance from a fixed number, or name another "
                f"column with {option}."
            )
        return replace(self, mean=mean, scale=scale)

    def strata(self, labels: Sequence[Label]) -> list[str]:
        """Fifths of the numbers, or fewer parts if fifths had fewer than ten examples each."""
        values: Any = labels
        parts = max(1, min(GROUPS, len(values) // ROWS_OF_A_GROUP))
        ranked = sorted(values)
        bounds = [ranked[len(ranked) * i // parts] for i in range(1, parts)]
        return [str(sum(value >= bound for bound in bounds)) for value in values]

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        if any(label is None for label in labels):
            raise DataError(f"{source}: an example has no number.")
        values = torch.tensor(labels, dtype=torch.float64)
        return EncodedLabels(rows=((values - self.mean) / self.scale).float())

    def sample_labels(self, rows: int, generator: torch.Generator) -> Tensor:
        return torch.randn(rows, generator=generator)

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        # Not in half precision, where autocast would leave the difference.
        found = logits.squeeze(-1).to(torch.promote_types(logits.dtype, torch.float32))
        losses = (found - labels.to(found.dtype)).square()
        return RowLosses(losses, torch.ones_like(losses))

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """Spearman's and Pearson's correlation, R², and RMSE in the data's own unit.

        A correlation with predictions that are all alike is zero. All scores are NaN if a
        prediction is not finite.
        """
        truth, found = labels.double(), logits.squeeze(-1).double()
        if not found.isfinite().all():
            # Ranks of NaN would give a correlation that looks valid.
            return dict.fromkeys(("spearman", "pearson", "r2", "rmse"), math.nan)
        square = float((truth - found).square().mean())
        spread = float((truth - truth.mean()).square().mean())
        return {
            "spearman": _correlation(_ranks(truth), _ranks(found)),
            "pearson": _correlation(_centred(truth)[0], _centred(found)[0]),
            "r2": 1 - square / spread if spread else 0.0,
            "rmse": math.sqrt(square) * self.scale,
        }

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        truth, found = labels.double(), logits.squeeze(-1).double()
        share = counts / counts.sum(dim=1, keepdim=True)
        square = share @ (truth - found).square()
        centred, unit = _centred(truth)
        spread = share @ centred.square() - (share @ centred).square()
        # If one row is drawn many times, rounding leaves a little.
        r2 = torch.where(spread > 1e-12, 1 - square / unit**2 / spread.clamp(min=1e-12), 0.0)
        return {
            "spearman": _correlations(_ranks_in(truth, counts), _ranks_in(found, counts), share),
            "pearson": _correlations(centred, _centred(found)[0], share),
            "r2": r2,
            "rmse": square.sqrt() * self.scale,
        }

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

    def linear_model(self, labels: Tensor, metric: Metric, penalty: float) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge(alpha=1 / penalty)

    def linear_outputs(self, model: Any, features: Any) -> Tensor:
        return torch.tensor(model.predict(features)).unsqueeze(1)


def _output(model: Any) -> Any:
    linear = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1]
    if not linear or linear[-1].bias is None:
        raise ModelError(
            f"the head of {type(model).__name__} does not end in a linear layer with one "
            "output and a bias, so it cannot learn numbers; use another encoder, such as BERT "
            "or RoBERTa"
        )
    return linear[-1]


def _ranks(values: Tensor) -> Tensor:
    """The rank of each value; equal values share the mean of theirs."""
    _, group, sizes = values.unique(return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    means: Tensor = last - (sizes - 1) / 2
    return means.index_select(0, group)


def _centred(values: Tensor) -> tuple[Tensor, float]:
    """The values around their mean, the largest 1 or -1, and their unit; 0 if they are alike.

    They may be in any unit, and rounding leaves a little of values that are all alike.
    """
    centred = values - values.mean()
    unit = float(centred.abs().max())
    alike = unit <= 1e-12 * float(values.abs().max())
    return (torch.zeros_like(values), 1.0) if alike else (centred / unit, unit)


def _correlation(one: Tensor, other: Tensor) -> float:
    one, other = one - one.mean(), other - other.mean()
    both = float(one.norm() * other.norm())
    # Rounding leaves a little if all values are alike.
    return float(one @ other) / both if both > 1e-12 else 0.0


def _ranks_in(values: Tensor, counts: Tensor) -> Tensor:
    """The ranks of the values in each resample ``[R, N]``, given how often it has each."""
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


def spoils_numbers(value: object) -> bool:
    """Whether a value that is not a number may occur among numbers: missing or written differently.

    Examples:
        >>> from aang_plugin_task_types.regression import spoils_numbers
        >>> [spoils_numbers(value) for value in ("NA", "3,5", "5.5%", "1,001.5", "high")]
        [True, True, True, True, False]
    """
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, str) and (
        spells_missing(value) or _NUMERAL.fullmatch(value.strip()) is not None
    )
