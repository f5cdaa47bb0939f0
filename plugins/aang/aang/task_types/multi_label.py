"""Any number of classes a text, or none: one yes-or-no question for every class."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from aang.task_types.cells import Cell, class_name, text_of
from aang.task_types.class_names import listed, note_look_alikes, refuse_too_many, unknown_class
from aang.task_types.names import TaskTypeName
from aang.task_types.task_type import Decoded, EncodedLabels, Errors, HeadShape, Offsets
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses
from aang_core.training.evaluation import Metric

SEPARATORS = ("|", ";", ",")
"""What may stand between the classes of a cell of text; the first that a column has is taken."""

THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))

_ROWS_AT_ONCE = 1024
"""Rows that are turned into float64 at once."""


@dataclass(frozen=True)
class MultiLabel:
    """Every text has any number of classes; the loss is the mean binary cross-entropy over them.

    A class is predicted where its probability reaches a threshold. One threshold serves all
    classes: with few dev rows, a threshold for each would be fitted to one or two of them.

    Attributes:
        labels: the classes, sorted, or in the order of their places.
        separator: what stands between the classes in cells of text; None if cells hold lists.
        threshold: the probability from which a class is predicted.
        by_place: whether a label is a zero or a one for each of ``labels``, in their order.
        unseen: classes of dev and test that train lacks.
    """

    labels: tuple[str, ...] = ()
    separator: str | None = None
    threshold: float = 0.5
    by_place: bool = False
    unseen: tuple[str, ...] = ()

    name: ClassVar[TaskTypeName] = "multi-label"
    reads_every_token: ClassVar[bool] = False
    metrics: ClassVar[tuple[Metric, ...]] = ("macro-f1", "micro-f1", "accuracy")
    draws: ClassVar[str] = "stratified by the rarest class of each text"
    baseline: ClassVar[str] = "best constant set of classes"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.labels + self.unseen

    @property
    def probable(self) -> tuple[str, ...]:
        return self.labels

    @property
    def head(self) -> HeadShape:
        return HeadShape("sequence-classification", self.labels, "multi_label_classification")

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        parts = self._parts(label)
        if self.by_place:
            names = self._names_at(label, parts)
        else:
            names = [class_name(label.inner(part), report) for part in parts]
            if len(set(names)) < len(names):
                # As in zeros and ones of unequal length, which are no places.
                report.add("label that names a class more than once", label.where)
        return text_of(text), tuple(sorted(set(names)))

    def _parts(self, cell: Cell) -> Sequence[object]:
        if cell.is_null:
            raise cell.fault("is null. A text without any class has an empty list, [].")
        whole = cell.with_list()
        if isinstance(whole.value, list):
            return whole.value
        if not isinstance(cell.value, str):
            raise cell.fault(
                f"holds {cell.value!r:.60}, which is neither a list of classes nor text. "
                'Write a list such as ["a", "b"], or text such as a|b.'
            )
        if self.separator is None:
            if not cell.value.strip():
                raise cell.fault(
                    "is empty where other examples hold lists. A text without any class has an "
                    "empty list, []."
                )
            raise cell.fault(
                f"holds the text {cell.value!r:.60} where other examples hold lists. Write a list "
                f"of classes there too: [{cell.value!r:.60}]."
            )
        return split_text(cell.value, self.separator)

    def _names_at(self, cell: Cell, parts: Sequence[object]) -> list[str]:
        """The classes that have a one at their place."""
        marks = [_mark(part) for part in parts]
        if len(marks) != len(self.labels) or None in marks:
            raise cell.fault(
                f"holds {cell.value!r:.60}, and the training data's labels are {len(self.labels)} "
                "zeros and ones, one for each class. Write a 0 or a 1 for each of them."
            )
        return [name for name, mark in zip(self.labels, marks, strict=True) if mark]

    def fitted(
        self, labels: Sequence[Label], source: str, option: str, report: ReadReport
    ) -> "MultiLabel":
        found = tuple(sorted({name for label in labels for name in _names(label)}))
        if len(found) < 2:
            what = f"the only class is {found[0]!r}" if found else "no example has a class"
            raise DataError(
                f"{source}: {what}. A multi-label task needs at least two classes; does {option} "
                "name the right column?"
            )
        if self.by_place:
            found = self._places_used(found, source, report)
        refuse_too_many(found, len(labels), source, option)
        note_look_alikes(source, found, report)
        return replace(self, labels=found)

    def _places_used(
        self, found: Sequence[str], source: str, report: ReadReport
    ) -> tuple[str, ...]:
        """All classes, which keep their places whether they occur or not."""
        if unused := [name for name in self.labels if name not in found]:
            report.note(f"{source}: no example has the class {listed(unused)}")
        return self.labels

    def names(self, label: Label) -> tuple[str, ...]:
        return _names(label)

    def knowing(self, unseen: Sequence[str]) -> "MultiLabel":
        return replace(self, unseen=tuple(unseen))

    def strata(self, labels: Sequence[Label]) -> list[str]:
        counts = Counter(name for label in labels for name in _names(label))
        groups = [
            min(_names(label), key=lambda name: (counts[name], name), default="")
            for label in labels
        ]
        # Of a few texts with different rarest classes, some can still be drawn.
        return groups if len(set(groups)) < len(groups) else [""] * len(groups)

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        ids = {name: i for i, name in enumerate(self.classes)}
        found = torch.zeros(len(labels), len(ids))
        for row, label in enumerate(labels):
            if not isinstance(label, tuple):
                raise unknown_class(label, self.labels, source)
            for name in _names(label):
                if name not in ids:
                    raise unknown_class(name, self.labels, source)
                found[row, ids[name]] = 1.0
        return EncodedLabels(rows=found)

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        # Not in half precision, where autocast may leave it.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        each = functional.binary_cross_entropy_with_logits(
            logits, labels[:, : logits.shape[1]].to(logits.dtype), reduction="none"
        )
        losses = each.mean(dim=1)
        return RowLosses(losses, torch.ones_like(losses))

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> "MultiLabel":
        """The best threshold for all classes together; of equals, the one nearest to a half."""
        tried = [replace(self, threshold=threshold) for threshold in THRESHOLDS]
        return max(
            tried,
            key=lambda one: (one.scores(labels, logits)[metric], -abs(one.threshold - 0.5)),
        )

    def settings(self) -> Mapping[str, float]:
        return {"threshold": self.threshold}

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """Macro-F1 over the classes that occur or are predicted, micro-F1, and the share of texts
        whose set of classes is exactly right."""
        return _scores(labels > 0.5, self._predicted(logits))

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        truth, predicted = labels > 0.5, self._predicted(logits)
        right, given, there = (
            counts @ marks.double() for marks in (truth & predicted, predicted, truth)
        )
        met = given + there
        f1 = 2 * right / met.clamp(min=1)
        exact = (truth == predicted).all(dim=1).double()
        return {
            "macro-f1": f1.sum(dim=1) / (met > 0).sum(dim=1).clamp(min=1),
            "micro-f1": 2 * right.sum(dim=1) / met.sum(dim=1).clamp(min=1),
            "accuracy": counts @ exact / counts.sum(dim=1),
        }

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        truth, predicted = labels > 0.5, self._predicted(logits)
        right, given, there = _counts(truth, predicted)
        return Errors(
            {
                name: {
                    "precision": _ratio(float(right[i]), float(given[i])),
                    "recall": _ratio(float(right[i]), float(there[i])),
                    "f1": _ratio(2 * float(right[i]), float(given[i] + there[i])),
                    "examples": int(there[i]),
                }
                for i, name in enumerate(self.classes)
            }
        )

    def counts(self, labels: Tensor) -> dict[str, int]:
        counted = (labels > 0.5).sum(dim=0).tolist()
        return dict(zip(self.classes, counted, strict=True))

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        """Each metric of the set that is best by it on train: the k most frequent classes, or the
        most frequent set."""
        truth, others = train > 0.5, labels > 0.5
        order = truth.sum(dim=0).argsort(descending=True, stable=True)
        most = _most_frequent_set(truth)
        of_most = _scores(truth, most.expand(truth.shape))
        found = {}
        for metric, of_top in _scores_of_top(truth, order).items():
            k = int(of_top.argmax())
            chosen = most
            if of_top[k] >= of_most[metric]:
                chosen = torch.zeros_like(most).index_fill(0, order[:k], True)
            found[metric] = _scores(others, chosen.expand(others.shape))[metric]
        return found

    def finish(self, model: Any) -> None:
        """Record beside what transformers reads how labels are read and predicted."""
        model.config.threshold = self.threshold
        model.config.label_separator = self.separator
        model.config.labels_by_place = self.by_place

    def undo_finish(self, model: Any, config: Any) -> str | None:
        return None

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        shares = logits.float().sigmoid().cpu()
        return [
            Decoded(
                [n for n, p in zip(self.labels, row, strict=True) if p >= self.threshold],
                dict(zip(self.labels, row, strict=True)),
            )
            for row in shares.tolist()
        ]

    def _predicted(self, logits: Tensor) -> Tensor:
        found = logits.float().sigmoid() >= self.threshold
        return functional.pad(found, (0, len(self.classes) - found.shape[1]))


def split_text(text: str, separator: str) -> list[str]:
    """The classes in a cell of text."""
    return [part for part in text.split(separator) if part.strip()]


def places_in(rows: Iterable[Sequence[object] | None], *, of_text: bool = False) -> int | None:
    """The number of places if all rows have as many, more than one, each with a zero or a one.

    It is enough that most rows are so if one of them has two zeros or two ones, as no list of names
    has: the others are then refused, with their lines, when they are read.

    Args:
        rows: the labels; None for one that is no list.
        of_text: whether they are parts of text. In lists, text is the name of a class.
    """
    total, sizes, repeats = 0, Counter[int](), set[int]()
    for row in rows:
        total += 1
        if row is None or any(
            _mark(part) is None or isinstance(part, str) > of_text for part in row
        ):
            continue
        sizes[len(row)] += 1
        if len({_mark(part) for part in row}) < len(row):
            repeats.add(len(row))
    size, count = sizes.most_common(1)[0] if sizes else (0, 0)
    most = count == total or (size in repeats and 2 * count > total)
    return size if size > 1 and most else None


def _mark(part: object) -> bool | None:
    """Whether a class is there, by a 1 or a 0, also as 1.0, true or text; None for other values."""
    if isinstance(part, str):
        return {"0": False, "1": True}.get(part.strip())
    if isinstance(part, bool | int | float) and part in (0, 1):
        return bool(part)
    return None


def _names(label: Label) -> tuple[str, ...]:
    return tuple(str(name) for name in label) if isinstance(label, tuple) else ()


def _counts(truth: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How often each class is predicted rightly, is predicted, and is there; ``[C]`` each."""
    return (truth & predicted).sum(dim=0), predicted.sum(dim=0), truth.sum(dim=0)


def _scores(truth: Tensor, predicted: Tensor) -> dict[str, float]:
    right, given, there = _counts(truth, predicted)
    met = (given + there) > 0
    each = 2 * right[met].double() / (given + there)[met]
    return {
        "macro-f1": float(each.mean()) if len(each) else 0.0,
        "micro-f1": _ratio(2 * float(right.sum()), float((given + there).sum())),
        "accuracy": float((truth == predicted).all(dim=1).double().mean()),
    }


def _scores_of_top(truth: Tensor, order: Tensor) -> dict[str, Tensor]:
    """The scores of predicting the first k of the classes for every row, k from 0 to C.

    Args:
        truth: bool ``[N, C]``.
        order: int64 ``[C]``, all classes, the most frequent first.

    Returns:
        Float64 ``[C + 1]`` for each metric.
    """
    rows, there = len(truth), truth.sum(dim=0)[order]
    k = torch.arange(len(order) + 1)
    f1 = torch.cat([there.new_zeros(1), 2 * there.double() / (rows + there)])
    right = torch.cat([there.new_zeros(1), there]).cumsum(dim=0)
    # k distinct places from 1 on add up to k(k + 1)/2 only if they are the first k.
    place = torch.empty(len(order), dtype=torch.float64)
    place[order] = torch.arange(1.0, len(order) + 1, dtype=torch.float64)
    total = torch.cat([some.double() @ place for some in truth.split(_ROWS_AT_ONCE)])
    size = truth.sum(dim=1)
    exact = size[2 * total == size * (size + 1)].bincount(minlength=len(k))
    return {
        "macro-f1": f1.cumsum(dim=0) / k.clamp(min=max(1, int((there > 0).sum()))),
        "micro-f1": 2 * right.double() / (k * rows + right[-1]).clamp(min=1),
        "accuracy": exact.double() / rows,
    }


def _most_frequent_set(truth: Tensor) -> Tensor:
    """The most frequent row of ``[N, C]``; of equals, the one with the class that is first."""
    counted = Counter(row.tobytes() for row in np.packbits(truth.numpy(), axis=1))
    most = max(counted, key=lambda row: (counted[row], row))
    bits = np.unpackbits(np.frombuffer(most, np.uint8), count=truth.shape[1])
    return torch.from_numpy(bits.astype(np.bool_))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
