"""The data stage: where an objective's text comes from (AANG, section 3, stage 1)."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word of a text, and its tag.

    Attributes:
        start: index of its first character in the text.
        end: index after its last character.
        tag: such as ``B-PER``, ``O`` or ``NOUN``.

    Examples:
        >>> from aang_core import TaggedWord
        >>> text, word = "in Paris", TaggedWord(3, 8, "B-LOC")
        >>> text[word.start : word.end]
        'Paris'
    """

    start: int
    end: int
    tag: str


Label = str | float | tuple[str, ...] | tuple[TaggedWord, ...]
"""The name of a class; a number; names of classes; or the words of the text with their tags."""


@dataclass(frozen=True, slots=True)
class Example:
    """One text with, where the data is labelled, its label.

    Attributes:
        text: the text, or the first of two.
        text_pair: the second text in tasks over pairs, such as premise and hypothesis.
        label: None for unlabelled text, else as the kind of task wants it: the name of the class, a
            number, the names of all classes that it has, or its words with their tags.

    Examples:
        >>> from aang_core import Example
        >>> Example("It rains.", text_pair="The street is wet.", label="entailment").label
        'entailment'
    """

    text: str
    text_pair: str | None = None
    label: Label | None = None


@dataclass
class ReadReport:
    """What a reader skipped or noticed: how often, and where first.

    Real corpora have broken lines and null fields. A reader skips them, but never silently.

    Attributes:
        counts: number of times that each event happened.
        first: where each event happened first.
        notes: sentences about things that happened once.

    Examples:
        >>> from aang_core import ReadReport
        >>> report = ReadReport()
        >>> report.add("broken line, skipped", "train.jsonl:7")
        >>> report.add("broken line, skipped", "train.jsonl:9")
        >>> report.lines()
        ['2 × broken line, skipped (first: train.jsonl:7)']
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, event: str, where: str) -> None:
        """Count one ``event`` (such as ``"broken line"``) met at ``where`` (``file:line``)."""
        self.counts[event] += 1
        self.first.setdefault(event, where)

    def note(self, sentence: str) -> None:
        """Record something that happened once and is not an error, such as how data was split."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def include(self, other: "ReadReport") -> None:
        """Merge the report of another pass over some of the same texts; nothing counts twice."""
        for event, count in other.counts.items():
            self.counts[event] = max(self.counts[event], count)
            self.first.setdefault(event, other.first[event])
        self.notes += [note for note in other.notes if note not in self.notes]

    def add_all(self, other: "ReadReport") -> None:
        """Merge the report of a pass over other texts: the counts add up."""
        self.counts.update(other.counts)
        self.first = other.first | self.first
        self.notes += [note for note in other.notes if note not in self.notes]

    def lines(self) -> list[str]:
        """The notes, then one sentence per kind of event, for people."""
        events = [f"{n} × {event} (first: {self.first[event]})" for event, n in self.counts.items()]
        return [*self.notes, *events]


@dataclass(frozen=True)
class DataContext:
    """What a data primitive may read.

    Attributes:
        train: the end task's own labelled training examples, in file order.
        domain: files, folders or globs of in-domain text, from ``--domain``.
        out_of_domain: files, folders or globs of generic text, from ``--out-of-domain``.
        unlabelled: texts like the end task's own, from ``--unlabelled``; None if the user named
            none. They have no labels, and none of them is a dev or test example. They are read
            each time that they are iterated over, in the same order.
        seed: seed of the run, for primitives that draw a sample.
        report: where to count what was skipped.

    Examples:
        >>> from aang_core import DataContext, Example
        >>> context = DataContext(train=[Example("good", label="positive")], seed=1)
        >>> [example.text for example in context.train]
        ['good']
    """

    train: Sequence[Example]
    domain: Sequence[Path] = ()
    out_of_domain: Sequence[Path] = ()
    unlabelled: Iterable[Example] | None = None
    seed: int = 0
    report: ReadReport = field(default_factory=ReadReport)


class Data(ABC):
    """The base class of data primitives, which are made by calling the registered target.

    Attributes:
        of_step: whether its rows are those that the end task trains on in the same step. Its
            examples are then ``context.train``. An objective over it shares the end task's pass
            through the encoder if it leaves the rows unchanged and lets every token see every
            other.
        of_end_task: whether its examples are ``context.train``, which are tokenised only once.
        buffer: number of texts of :meth:`stream` to hold and draw from in random order; None to
            read :meth:`examples` instead.

    Examples:
        >>> from aang_core import Data, DataContext, Example
        >>> class LowerCase(Data):
        ...     def examples(self, context):
        ...         return [Example(example.text.lower()) for example in context.train]
        >>> LowerCase().examples(DataContext(train=[Example("NASA")]))
        [Example(text='nasa', text_pair=None, label=None)]
    """

    of_step: bool = False
    of_end_task: bool = False
    buffer: int | None = None

    @abstractmethod
    def examples(self, context: DataContext) -> Iterable[Example]:
        """The examples of this source, in an order that depends on ``context`` alone.

        Raises:
            DataError: no usable example could be read; the message says from where.
        """

    def stream(self, context: DataContext) -> "TextStream":
        """An endless stream, positioned at the first text; read if there is a ``buffer``.

        Raises:
            DataError: no usable text could be read; the message says from where.
        """
        raise NotImplementedError


class TextStream(Protocol):
    """An endless sequence of texts, from a corpus that is read again and again.

    Examples:
        >>> from aang_core import Example, TextStream
        >>> class Counting:
        ...     def __init__(self):
        ...         self.number = 0
        ...     def __next__(self):
        ...         self.number += 1
        ...         return Example(f"text {self.number}")
        ...     def state_dict(self):
        ...         return {"number": self.number}
        ...     def load_state_dict(self, state):
        ...         self.number = state["number"]
        >>> stream: TextStream = Counting()
        >>> saved = stream.state_dict()
        >>> first = next(stream)
        >>> stream.load_state_dict(saved)
        >>> next(stream) == first
        True
    """

    def __next__(self) -> Example:
        """The next text.

        Raises:
            DataError: a whole pass over the corpus yielded no text.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """The position of the next text, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a value of :meth:`state_dict`, even one that another process returned."""
        ...
