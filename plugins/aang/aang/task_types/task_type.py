"""What a kind of end task knows: from the cell of a table to the scores of a model."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from aang.task_types.cells import MOST_CLASSES, Cell, is_null, listed, note_look_alikes
from aang.task_types.metrics import Metric
from aang.task_types.written_lists import plain
from aang_core.errors import DataError
from aang_core.objectives.stages.data import Label, ReadReport
from aang_core.tasks.task import RowLosses

NO_LABEL = -100
"""The label of a row or token that has none, which torch's cross-entropy leaves out."""

Offsets = Sequence[Sequence[tuple[int, int]]]
"""For every row, where each of its tokens begins and ends in the text; (0, 0) for special ones."""

Pipeline = Literal["text-classification", "token-classification"]
"""The transformers pipeline of a model, by which its class is chosen."""


@dataclass(frozen=True)
class LabelColumn:
    """The labels of all training examples, as their table has them.

    Attributes:
        name: the column's name.
        labels: its cells.
        texts: the cells of the text beside them.
        typed: whether the table tells texts from numbers; a CSV file does not.
        source: what messages call the table.
    """

    name: str
    labels: Sequence[object]
    texts: Sequence[object] = ()
    typed: bool = True
    source: str = "train"

    @property
    def filled(self) -> list[Any]:
        """The labels that are not null, with lists in place of arrays and tuples."""
        return [label for label in map(plain, self.labels) if not is_null(label)]

    @property
    def declares_names(self) -> bool:
        """Whether every label is text in a table that could have held a number instead."""
        return self.typed and all(isinstance(label, str) for label in self.filled)


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


@dataclass(frozen=True)
class TaskType(ABC):
    """One kind of end task: what a label is, and all that follows from it.

    An instance belongs to one task: it knows the task's classes, or how its numbers are scaled.
    Before :meth:`fitted` it knows nothing and can only read cells.

    Logits are ``[N, C]`` for kinds with a label for every row, and ``[N, T, C]`` for kinds with a
    label for every token. Labels are what :meth:`encode` made of them: ``[N, ...]`` or ``[N, T]``.

    A kind of your own defines ``name``, ``metrics``, ``baseline`` and the abstract methods. The
    rest has defaults. ``aang train`` without a recipe, space or weighter trains it on the space
    ``td`` with the weighter ``factored``, because the output of the recipe ``contrast`` requires
    the trait ``end-task:single-label``, which only the kind of that name has.

    Attributes:
        labels: the name of each number that the head computes, such as the classes of train.
        unseen: classes of dev and test that train lacks. The head has no output for them: they are
            never predicted, rows and words that have one count as wrong, and the loss leaves such
            targets out.
        name: the value of ``--task-type``, under which the kind is registered.
        model: what a trained model is, for people, such as ``A text classifier``.
        metrics: what a model can be chosen by; the first is the default.
        baseline: what :meth:`baseline_scores` are of, such as ``majority class``.
        label_form: what the label of an example is in Python, for messages.
        draws: how rows are drawn, such as ``stratified by class``.
        reads_every_token: whether the head reads every token; otherwise it reads the first.
        names_classes: whether labels are names of classes.
        several_classes: whether a text may have several classes or tags.
        empty_is_label: whether an empty cell is a label.
        problem_type: transformers' ``problem_type``, if the model needs one.
        waives: traits that outputs with the trait ``end-task-head`` may do without, because this
            kind's head does not read what they are about.
        pipeline_options: what the model card gives to transformers' ``pipeline``.
        linear: the linear model that predicts such labels from TF-IDF, for people; None if there is
            none.
    """

    labels: tuple[str, ...] = ()
    unseen: tuple[str, ...] = field(default=(), kw_only=True)

    name: ClassVar[str]
    model: ClassVar[str] = "A model"
    metrics: ClassVar[tuple[Metric, ...]]
    baseline: ClassVar[str]
    label_form: ClassVar[str] = "a string"
    draws: ClassVar[str] = "stratified by class"
    reads_every_token: ClassVar[bool] = False
    names_classes: ClassVar[bool] = True
    several_classes: ClassVar[bool] = False
    empty_is_label: ClassVar[bool] = False
    problem_type: ClassVar[str | None] = None
    waives: ClassVar[frozenset[str]] = frozenset()
    pipeline_options: ClassVar[str] = "truncation=True"
    linear: ClassVar[str | None] = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The names that examples are counted and errors listed by, those that train lacks last."""
        return self.labels + self.unseen if self.names_classes else ()

    @property
    def probable(self) -> tuple[str, ...]:
        """The names that predictions have probabilities for; empty if they have none."""
        return self.labels if self.names_classes and not self.reads_every_token else ()

    @classmethod
    def recognises(cls, column: LabelColumn, report: ReadReport) -> str | None:
        """What a column of labels of this kind holds, such as ``lists of classes``.

        Args:
            column: the labels of train, of a task whose kind the user did not name.
            report: where to note what is nearly of this kind.

        Returns:
            None if the labels are not of this kind, or could as well be of another.
        """
        return None

    @classmethod
    def of_column(cls, column: LabelColumn, names: Sequence[str], report: ReadReport) -> Self:
        """This kind for a column of labels, before it is fitted.

        Args:
            column: the labels of train.
            names: ``--label-names``, for kinds whose labels have places and no names.
            report: where to note how they are read.

        Raises:
            DataError: ``names`` does not fit the labels.
        """
        if names:
            raise DataError(
                f"{column.source}: --label-names names the places of zeros and ones, and the "
                f"labels in column {column.name!r} are other values. Leave it out."
            )
        return cls()

    @classmethod
    def of_model(cls, config: Any, labels: tuple[str, ...]) -> Self | None:
        """This kind as a saved model has it; None if the model is of another kind.

        Args:
            config: the model's configuration, in which :meth:`finish` wrote.
            labels: the names of its outputs.
        """
        return cls(labels) if getattr(config, "end_task", None) == cls.name else None

    def finish(self, model: Any) -> None:
        """Make a trained transformers model compute and say what users expect, in place.

        A kind that writes more calls this, too: :meth:`of_model` recognises ``end_task``. One that
        derives from `SingleLabel`, which writes nothing, takes both methods from `TaskType`.
        """
        model.config.end_task = self.name

    def undo_finish(self, model: Any, config: Any) -> str | None:
        """Undo :meth:`finish` in place, so that the model computes what :meth:`losses` expects.

        Args:
            model: a model of this kind with these outputs.
            config: the configuration that was saved with it.

        Returns:
            None; or why this task cannot continue with it, such as ``is for another scale``: the
            model is then unchanged.
        """
        return None

    @abstractmethod
    def read(self, text: Cell, label: Cell, report: ReadReport) -> tuple[str, Label]:
        """Read the text and the label of an example.

        Raises:
            DataError: a cell does not hold what this kind needs.
        """

    def holds(self, label: object) -> bool:
        """Whether the label of an example is one of this kind, as :meth:`read` returns them."""
        return isinstance(label, str)

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
        found = tuple(sorted({name for label in labels for name in self.names(label)}))
        if len(found) < 2:
            what = f"the only class is {found[0]!r}" if found else "no example has a class"
            raise DataError(
                f"{source}: {what}. A {self.name} task needs at least two classes; does {option} "
                "name the right column?"
            )
        if len(found) > MOST_CLASSES:
            raise DataError(
                f"{source}: there are {len(found)} different labels in {len(labels)} examples, "
                f"such as {listed([name[:40] for name in found], 3)}. The maximum is "
                f"{MOST_CLASSES} classes; does {option} name the right column?"
            )
        note_look_alikes(source, found, report)
        return replace(self, labels=found)

    @cached_property
    def _ids(self) -> Mapping[object, int]:
        return {name: i for i, name in enumerate(self.labels + self.unseen)}

    def ids(self, names: Iterable[object], source: str) -> list[int]:
        """The ids of names of classes; those of :attr:`unseen` follow those of :attr:`labels`.

        Raises:
            DataError: one is unknown, or None.
        """
        names = list(names)
        for name in names:
            if name not in self._ids:
                raise DataError(
                    f"{source}: an example has the label {name!r}; the classes are "
                    f"{', '.join(map(repr, self.labels))}."
                )
        return [self._ids[name] for name in names]

    def names(self, label: Label) -> tuple[str, ...]:
        """The classes that a label names; empty for kinds without classes."""
        return (str(label),) if self.names_classes else ()

    def strata(self, labels: Sequence[Label]) -> list[str]:
        """The group of each example; draws keep the shares of groups."""
        return [str(label) for label in labels]

    @abstractmethod
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

    def sample_labels(self, rows: int, generator: torch.Generator) -> Tensor:
        """Made-up labels of ``rows`` texts as :meth:`encode` returns them, for tests of outputs."""
        return torch.randint(len(self.labels), (rows,), generator=generator)

    @abstractmethod
    def losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        """The loss of each row.

        Targets whose class is in ``unseen`` have loss 0 and count 0. Logits may be in half
        precision; compute with ``logits.float()``.
        """

    def tuned(self, labels: Tensor, logits: Tensor, metric: Metric) -> Self:
        """This kind with the decoding that is best by ``metric`` on these dev rows."""
        return self

    def settings(self) -> Mapping[str, float]:
        """What :meth:`tuned` has chosen, by name, such as a threshold; empty if nothing."""
        return {}

    @abstractmethod
    def scores(self, labels: Tensor, logits: Tensor) -> Mapping[str, float]:
        """Every metric of the predictions."""

    def resampled(self, labels: Tensor, logits: Tensor, counts: Tensor) -> Mapping[str, Tensor]:
        """Every metric of resamples of the rows; kinds that can compute all at once are faster.

        Args:
            labels: of N rows.
            logits: of the same rows.
            counts: how often each resample has each row, float64 ``[R, N]``.

        Returns:
            Float64 ``[R]`` for each metric.
        """
        found = []
        for times in counts:
            rows = torch.arange(len(times)).repeat_interleave(times.long())
            found.append(self.scores(labels[rows], logits[rows]))
        return {name: torch.tensor([one[name] for one in found]).double() for name in found[0]}

    def errors(self, labels: Tensor, logits: Tensor) -> Errors:
        """The predictions in detail."""
        return Errors()

    def counts(self, labels: Tensor) -> dict[str, int]:
        """How many examples each of :attr:`classes` has."""
        counted = Counter(labels.tolist() if self.classes else ())
        return {name: counted[i] for i, name in enumerate(self.classes)}

    @abstractmethod
    def baseline_scores(self, train: Tensor, labels: Tensor) -> Mapping[str, float]:
        """Scores of the best prediction that ignores the text, judged by train alone."""

    @abstractmethod
    def decode(self, logits: Tensor, texts: Sequence[str], offsets: Offsets) -> list[Decoded]:
        """The predictions for texts, from what a finished model computes.

        Args:
            logits: of B texts.
            texts: the B texts.
            offsets: of their tokens; empty unless :attr:`reads_every_token`.
        """

    @classmethod
    def usage(cls, argument: str) -> list[str]:
        """The lines of the model card that use transformers' pipeline ``classify``."""
        return [f"classify({argument})"]

    def linear_model(self, labels: Tensor, metric: Metric, penalty: float) -> Any:
        """A scikit-learn model that learns ``labels``; called only if :attr:`linear` is set.

        Args:
            labels: of the rows that it will be fitted to.
            metric: what it will be scored by.
            penalty: the inverse penalty C.
        """
        raise NotImplementedError

    def linear_outputs(self, model: Any, features: Any) -> Tensor:
        """What the end task's head would compute, ``[N, C]``, by a fitted :meth:`linear_model`."""
        raise NotImplementedError

    @property
    def pipeline(self) -> Pipeline:
        """The kind of transformers class that a model is saved as."""
        return "token-classification" if self.reads_every_token else "text-classification"
