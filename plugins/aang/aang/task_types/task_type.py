"""What a kind of end task knows: from the cell of a table to the scores of a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from torch import Tensor

from aang.task_types.cells import Cell
from aang.task_types.names import TaskTypeName
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses
from aang_core.training.evaluation import Metric

Architecture = Literal["sequence-classification", "token-classification"]

Offsets = Sequence[Sequence[tuple[int, int]]]
"""For every row, where each of its tokens begins and ends in the text; (0, 0) for special ones."""


@dataclass(frozen=True)
class HeadShape:
    """The end task's head, in transformers' words.

    Attributes:
        architecture: the kind of transformers class.
        outputs: the name of each number that it computes, for a text or for each token.
        problem_type: transformers' ``problem_type``, if it needs one.
    """

    architecture: Architecture
    outputs: tuple[str, ...]
    problem_type: str | None = None


@dataclass(frozen=True)
class EncodedLabels:
    """The labels of N rows as a tensor: one of the two, the other is None.

    Attributes:
        rows: ``[N, ...]``, a label for every row.
        tokens: int64, a label for every token of all rows, one row after the other; -100 where
            there is none.
    """

    rows: Tensor | None = None
    tokens: Tensor | None = None


@dataclass(frozen=True)
class Errors:
    """What a model gets right and wrong, in detail.

    Attributes:
        classes: precision, recall, F1 and number of examples of each class.
        confusion: how often class i was predicted as class j; empty if there is no such matrix.
    """

    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    confusion: Sequence[Sequence[int]] = ()


@dataclass(frozen=True)
class Decoded:
    """What a model says about one text.

    Attributes:
        label: as JSON holds it: a class, a list of classes, a number, or a list of spans.
        probabilities: of every class; empty where there are none.
    """

    label: Any
    probabilities: Mapping[str, float] = field(default_factory=dict)


class TaskType(Protocol):
    """One kind of end task.

    A value of it belongs to one task: it knows the task's classes, or how its numbers are scaled.
    Before :meth:`fitted` it knows nothing and can only read cells.

    Logits are ``[N, C]`` for kinds with a label for every row, and ``[N, T, C]`` for kinds with a
    label for every token. Labels are what :meth:`encode` made of them: ``[N, ...]`` or ``[N, T]``.
    """

    @property
    def name(self) -> TaskTypeName:
        """The value of ``--task-type``."""
        ...

    @property
    def reads_every_token(self) -> bool:
        """Whether the head reads every token; otherwise it reads the first."""
        ...

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What a model can be chosen by; the first is the default."""
        ...

    @property
    def draws(self) -> str:
        """How rows are drawn, such as ``stratified by class``."""
        ...

    @property
    def baseline(self) -> str:
        """What :meth:`baseline_scores` are of, such as ``majority class``."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each number that the head computes."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """What examples are counted by and errors are listed by; empty if by nothing.

        Classes that train lacks come last, except among types of spans.
        """
        ...

    @property
    def probable(self) -> tuple[str, ...]:
        """What predictions have probabilities of; empty if they have none."""
        ...

    @property
    def head(self) -> HeadShape:
        """The end task's head."""
        ...

    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        """Read the text and the label of an example.

        Raises:
            DataError: a cell does not hold what this kind needs.
        """
        ...

    def fitted(self, labels: Sequence[Label], source: str, option: str, report: ReadReport) -> Self:
        """This kind for the task with these training labels.

        Args:
            labels: the labels of all training examples; at least one.
            source: what messages call the training data.
            option: the option that names the column of the label.
            report: where to note what is odd.

        Raises:
            DataError: nothing can be learned from them.
        """
        ...

    def names(self, label: Label) -> tuple[str, ...]:
        """The classes that a label names; empty for kinds without classes."""
        ...

    def knowing(self, unseen: Sequence[str]) -> Self:
        """This kind for data that also has classes which train lacks.

        The head has no output for them: they are never predicted, rows and words that have one
        count as wrong, and the loss leaves such targets out.
        """
        ...

    def strata(self, labels: Sequence[Label]) -> list[str]:
        """The group of each example; draws keep the shares of groups."""
        ...

    def encode(
        self, labels: Sequence[Label | None], offsets: Callable[[], Offsets], source: str
    ) -> EncodedLabels:
        """The labels as tensors.

        Args:
            labels: the label of each row.
            offsets: returns where the tokens of each row are; costs a pass of the tokenizer.
            source: what messages call the rows.

        Raises:
            DataError: a label is missing or unknown.
        """
        ...

    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        """The loss of each row."""
        ...

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> Self:
        """This kind, decoding as is best by ``metric`` on these dev rows."""
        ...

    def settings(self) -> Mapping[str, float]:
        """What :meth:`tuned` has chosen, by name, such as a threshold; empty if nothing."""
        ...

    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """Every metric of the predictions."""
        ...

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        """Every metric of resamples of the rows, all at once.

        Args:
            labels: of N rows.
            logits: of the same rows.
            counts: how often each resample has each row, float64 ``[R, N]``.

        Returns:
            Float64 ``[R]`` for each metric.
        """
        ...

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        """The predictions in detail."""
        ...

    def counts(self, labels: Tensor) -> dict[str, int]:
        """How many examples each of :attr:`classes` has."""
        ...

    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        """Scores of the best prediction that ignores the text, judged by train alone."""
        ...

    def finish(self, model: Any) -> None:
        """Make a trained transformers model, in place, compute and say what people expect."""
        ...

    def undo_finish(self, model: Any, config: Any) -> str | None:
        """Make a finished model, in place, compute again what :meth:`losses` compares.

        Args:
            model: a model of this kind with these outputs.
            config: the configuration that was saved with it.

        Returns:
            None; or why this task cannot go on with it, such as ``is for another scale``, and then
            the model is as it was.
        """
        ...

    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        """The predictions for texts, from what a finished model computes.

        Args:
            logits: of B texts.
            texts: the B texts.
            offsets: of their tokens; empty unless :attr:`reads_every_token`.
        """
        ...
