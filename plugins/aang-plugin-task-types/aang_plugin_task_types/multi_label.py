"""Any number of classes a text, or none: one yes-or-no question for every class."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from aang.task_types import (
    Cell,
    Decoded,
    EncodedLabels,
    Errors,
    Label,
    LabelColumn,
    Metric,
    Offsets,
    TaskType,
    are_lists,
    class_name,
    list_of,
    listed,
    per_class,
    text_of,
)
from torch import Tensor
from torch.nn import functional

from aang_core import DataError, ReadReport, RowLosses

SEPARATORS = ("|", ";", ",")
"""What may stand between the classes of a cell of text; the first that a column has is taken."""

THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))


@dataclass(frozen=True)
class MultiLabel(TaskType):
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

    separator: str | None = None
    threshold: float = 0.5
    by_place: bool = False

    name: ClassVar[str] = "multi-label"
    model: ClassVar[str] = "A classifier of texts with any number of classes each"
    metrics: ClassVar[tuple[Metric, ...]] = ("macro-f1", "micro-f1", "accuracy")
    baseline: ClassVar[str] = "best constant set of classes"
    label_form: ClassVar[str] = "a tuple of strings"
    draws: ClassVar[str] = "stratified by the rarest class of each text"
    several_classes: ClassVar[bool] = True
    empty_is_label: ClassVar[bool] = True
    problem_type: ClassVar[str | None] = "multi_label_classification"
    linear: ClassVar[str | None] = "logistic regression"

    @classmethod
    def recognises(cls, column: LabelColumn, report: ReadReport) -> str | None:
        if any(isinstance(label, list) for label in column.filled):
            return "lists of classes"
        written = [label for label in column.filled if isinstance(label, str) and label.strip()]
        return "lists of classes, written as text" if are_lists(written) else None

    @classmethod
    def of_column(cls, column: LabelColumn, names: Sequence[str], report: ReadReport) -> Self:
        """Lists, or text with the first separator that occurs in it.

        If each of them has the same number of zeros and ones, every place is a class.
        """
        labels = column.filled
        texts = [label for label in labels if isinstance(label, str)]
        separator = None
        if len(texts) == len(labels) and not are_lists([text for text in texts if text.strip()]):
            found = (mark for mark in SEPARATORS if any(mark in text for text in texts))
            separator = next(found, SEPARATORS[0])
            count = _places((_split(text, separator) for text in texts), of_text=True)
            if count is None:
                _note_separator(separator, texts, column.name, report)
        else:
            count = _places(map(list_of, labels))
        if count is None:
            return replace(super().of_column(column, names, report), separator=separator)
        if names and len(names) != count:
            raise DataError(
                f"{column.source}: --label-names has {len(names)} names, and the labels in column "
                f"{column.name!r} have {count} places. Give one name for each place."
            )
        classes = tuple(names) or tuple(map(str, range(count)))
        other = "" if names else "; --label-names names them"
        report.note(
            f"column {column.name!r}: each label is {count} zeros and ones, which mark by their "
            f"place the classes {listed(classes, 5)}{other}"
        )
        return cls(classes, separator, by_place=True)

    @classmethod
    def of_model(cls, config: Any, labels: tuple[str, ...]) -> Self | None:
        if config.problem_type != cls.problem_type:
            return None
        separator = getattr(config, "label_separator", None)
        threshold = float(getattr(config, "threshold", cls.threshold))
        by_place = bool(getattr(config, "labels_by_place", False))
        return cls(labels, separator, threshold, by_place=by_place)

    def finish(self, model: Any) -> None:
        """Also record how labels are read and predicted, beside what transformers reads."""
        model.config.threshold = self.threshold
        model.config.label_separator = self.separator
        model.config.labels_by_place = self.by_place

    def holds(self, label: object) -> bool:
        return isinstance(label, tuple) and all(isinstance(name, str) for name in label)

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        parts = self._parts(label)
        if self.by_place:
            names = self._names_at(label, parts)
        else:
            names = [class_name(label.inner(part), report) for part in parts]
            if len(set(names)) < len(names):
                # Such as zeros and ones of unequal length, which are not by place.
                report.add("label that names a class more than once", label.where)
        return text_of(text), tuple(sorted(set(names)))

    def _parts(self, cell: Cell) -> Sequence[object]:
        whole = cell.with_list()
        if isinstance(whole.value, list):
            return whole.value
        if not isinstance(cell.value, str):
            raise cell.fault(
                f"holds {cell.value!r:.60}, which is neither a list of classes nor text. "
                'Write a list such as ["a", "b"], or text such as a|b.'
            )
        if self.separator is None:
            raise cell.fault(
                f"holds the text {cell.value!r:.60} where other examples hold lists. Write a list "
                'of classes there too, such as ["a", "b"], or [] for a text without any class.'
            )
        return _split(cell.value, self.separator)

    def _names_at(self, cell: Cell, parts: Sequence[object]) -> list[str]:
        """The classes that have a one at their place."""
        marks = [_mark(part) for part in parts]
        if len(marks) != len(self.labels) or None in marks:
            raise cell.fault(
                f"holds {cell.value!r:.60}, and the training data's labels are {len(self.labels)} "
                "zeros and ones, one for each class. Write a 0 or a 1 for each of them."
            )
        return [name for name, mark in zip(self.labels, marks, strict=True) if mark]

    def fitted(self, labels: Sequence[Label], source: str, option: str, report: ReadReport) -> Self:
        found = super().fitted(labels, source, option, report)
        if not self.by_place:
            return found
        # Classes keep their places even if they do not occur.
        if unused := [name for name in self.labels if name not in found.labels]:
            report.note(f"{source}: no example has the class {listed(unused)}")
        return self

    def names(self, label: Label) -> tuple[str, ...]:
        return tuple(map(str, label)) if isinstance(label, tuple) else ()

    def strata(self, labels: Sequence[Label]) -> list[str]:
        counts = Counter(name for label in labels for name in self.names(label))
        groups = [
            min(self.names(label), key=lambda name: (counts[name], name), default="")
            for label in labels
        ]
        if len(set(groups)) < len(groups):
            return groups
        # Of a few texts with different rarest classes, some can still be drawn; the only text of a
        # class stays a group of its own, which no draw takes whole.
        return [group if counts[group] == 1 else "" for group in groups]

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        found = torch.zeros(len(labels), len(self.classes))
        for row, label in enumerate(labels):
            found[row, self.ids(label if isinstance(label, tuple) else [label], source)] = 1.0
        return EncodedLabels(rows=found)

    def sample_labels(self, rows: int, generator: torch.Generator) -> Tensor:
        return torch.randint(2, (rows, len(self.labels)), generator=generator).float()

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        # Not in half precision, where autocast may leave it.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        each = functional.binary_cross_entropy_with_logits(
            logits, labels[:, : logits.shape[1]].to(logits.dtype), reduction="none"
        )
        losses = each.mean(dim=1)
        return RowLosses(losses, torch.ones_like(losses))

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> Self:
        """The best threshold for all classes together; among equals, the one nearest to a half."""
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
        truth, predicted = (labels > 0.5).tolist(), self._predicted(logits).tolist()
        rates = per_class(truth, predicted, len(self.classes))
        return Errors(dict(zip(self.classes, rates, strict=True)))

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
        for metric, of_top in _scores_of_top(truth[:, order]).items():
            k = int(of_top.argmax())
            chosen = most
            if of_top[k] >= of_most[metric]:
                chosen = torch.zeros_like(most).index_fill(0, order[:k], True)
            found[metric] = _scores(others, chosen.expand(others.shape))[metric]
        return found

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        shares = logits.float().sigmoid().cpu()
        return [
            Decoded(
                [n for n, p in zip(self.labels, row, strict=True) if p >= self.threshold],
                dict(zip(self.labels, row, strict=True)),
            )
            for row in shares.tolist()
        ]

    @classmethod
    def usage(cls, argument: str) -> list[str]:
        return [
            f"scored = classify({argument}, top_k=None)",
            "threshold = classify.model.config.threshold",
            '[one["label"] for one in scored if one["score"] >= threshold]',
        ]

    def linear_model(self, labels: Tensor, metric: Metric, penalty: float) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        weights = "balanced" if metric == "macro-f1" else None
        one = LogisticRegression(C=penalty, max_iter=1000, class_weight=weights)
        return OneVsRestClassifier(one)

    def linear_outputs(self, model: Any, features: Any) -> Tensor:
        return torch.tensor(model.predict_proba(features)).logit(eps=1e-6)

    def _predicted(self, logits: Tensor) -> Tensor:
        found = logits.float().sigmoid() >= self.threshold
        return functional.pad(found, (0, len(self.classes) - found.shape[1]))


def _note_separator(separator: str, texts: Sequence[str], column: str, report: ReadReport) -> None:
    """Note text that may have been meant to be split and is not."""
    found = [mark for mark in SEPARATORS if any(mark in text for text in texts)]
    if not found:
        report.note(
            f"column {column!r}: no label has {', '.join(SEPARATORS[:-1])} or {SEPARATORS[-1]} in "
            "it, so each is one class; lists have several"
        )
    elif len(found) > 1:
        others = " and ".join(mark for mark in found if mark != separator)
        report.note(
            f"column {column!r}: labels are split at {separator}, so {others} in them is part of "
            "the name of a class"
        )


def _split(text: str, separator: str) -> list[str]:
    """The classes in a cell of text."""
    return [part for part in text.split(separator) if part.strip()]


def _places(rows: Iterable[Sequence[object] | None], *, of_text: bool = False) -> int | None:
    """The number of places if all rows have as many, more than one, each with a zero or a one.

    Most rows are enough if one of them has two zeros or two ones, which no list of names has: the
    others are refused, with their lines, when they are read.

    Args:
        rows: the labels; None for one that is not a list.
        of_text: whether they are parts of text. In lists, text is the name of a class.
    """
    marks = [None if row is None else [_mark(part, of_text) for part in row] for row in rows]
    marked = [row for row in marks if row and None not in row]
    size, count = Counter(map(len, marked)).most_common(1)[0] if marked else (0, 0)
    repeats = any(len(row) == size > len(set(row)) for row in marked)
    most = count == len(marks) or (repeats and 2 * count > len(marks))
    return size if size > 1 and most else None


def _mark(part: object, of_text: bool = True) -> bool | None:
    """Whether a class is there: 1 or 0, also as 1.0, true or text; None for other values."""
    if isinstance(part, str):
        return {"0": False, "1": True}.get(part.strip()) if of_text else None
    return bool(part) if isinstance(part, bool | int | float) and part in (0, 1) else None


def _scores(truth: Tensor, predicted: Tensor) -> dict[str, float]:
    right, given, there = (m.sum(dim=0) for m in (truth & predicted, predicted, truth))
    met = (given + there) > 0
    each = 2 * right[met].double() / (given + there)[met]
    return {
        "macro-f1": float(each.mean()) if len(each) else 0.0,
        "micro-f1": 2 * int(right.sum()) / max(1, int((given + there).sum())),
        "accuracy": float((truth == predicted).all(dim=1).double().mean()),
    }


def _scores_of_top(truth: Tensor) -> dict[str, Tensor]:
    """The scores of predicting the first k of the classes for every row, k from 0 to C.

    Args:
        truth: bool ``[N, C]``, the most frequent class first.

    Returns:
        Float64 ``[C + 1]`` for each metric.
    """
    rows, there = len(truth), truth.sum(dim=0)
    k = torch.arange(len(there) + 1)
    f1 = torch.cat([there.new_zeros(1), 2 * there.double() / (rows + there)])
    right = torch.cat([there.new_zeros(1), there]).cumsum(dim=0)
    of_first = ~(truth[:, 1:] & ~truth[:, :-1]).any(dim=1)
    exact = truth[of_first].sum(dim=1).bincount(minlength=len(k))
    return {
        "macro-f1": f1.cumsum(dim=0) / k.clamp(min=max(1, int((there > 0).sum()))),
        "micro-f1": 2 * right.double() / (k * rows + right[-1]).clamp(min=1),
        "accuracy": exact.double() / rows,
    }


def _most_frequent_set(truth: Tensor) -> Tensor:
    """The most frequent row of ``[N, C]``; among equals, the one with the first class."""
    sets, counts = truth.unique(dim=0, return_counts=True)  # sorted by their classes
    most: Tensor = sets[counts == counts.max()][-1]
    return most
