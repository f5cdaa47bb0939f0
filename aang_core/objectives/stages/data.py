"""The data stage: where an objective's text comes from (AANG, section 3, stage 1)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Example:
    """One text with, where the data is labelled, the name of its class.

    ``text_pair`` is the second text of tasks over pairs (premise and hypothesis, say).
    """

    text: str
    text_pair: str | None = None
    label: str | None = None


@dataclass
class ReadReport:
    """What a reader met on its way: how often, and where first.

    Real corpora have broken lines and null fields; a reader skips them, but never silently.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, event: str, where: str) -> None:
        """Count one ``event`` (such as ``"broken line"``) met at ``where`` (``file:line``)."""
        self.counts[event] += 1
        self.first.setdefault(event, where)

    def note(self, sentence: str) -> None:
        """Tell something that happened once and is no fault, such as how data was split."""
        self.notes.append(sentence)

    def include(self, other: "ReadReport") -> None:
        """Take over what another reading of, in part, the same texts met; nothing counts twice."""
        for event, count in other.counts.items():
            self.counts[event] = max(self.counts[event], count)
            self.first.setdefault(event, other.first[event])
        self.notes += [note for note in other.notes if note not in self.notes]

    def add_all(self, other: "ReadReport") -> None:
        """Take over what the reading of other texts met; all of it counts."""
        self.counts.update(other.counts)
        self.first = other.first | self.first
        self.notes += [note for note in other.notes if note not in self.notes]

    def lines(self) -> list[str]:
        """The notes, then one sentence per kind of event, for people."""
        events = [f"{n} × {event} (first: {self.first[event]})" for event, n in self.counts.items()]
        return [*self.notes, *events]


@dataclass(frozen=True)
class DataContext:
    """What a data primitive may read from.

    train: the end task's own labelled training examples, in file order.
    domain: the files, folders or globs of in-domain text that the user named with ``--domain``.
    out_of_domain: the files, folders or globs of generic text that ``--out-of-domain`` names.
    seed: seed of the run, for primitives that draw a sample.
    report: where to count what had to be skipped.
    """

    train: Sequence[Example]
    domain: Sequence[Path] = ()
    out_of_domain: Sequence[Path] = ()
    seed: int = 0
    report: ReadReport = field(default_factory=ReadReport)


class Data(Protocol):
    """A data primitive, made by calling its registered target with the user's options."""

    def examples(self, context: DataContext) -> Iterable[Example]:
        """The examples of this source, in an order that depends on nothing but ``context``.

        Raises:
            DataError: nothing usable could be read; the message says from where.
        """
        ...


@runtime_checkable
class StepData(Protocol):
    """A data primitive that yields the very rows which the end task trains on in the step.

    Its examples are ``context.train``. An objective over it that reads the rows as they are, every
    token seeing every other, shares the end task's pass through the encoder.
    """

    @property
    def of_step(self) -> bool: ...


@runtime_checkable
class EndTaskData(Protocol):
    """A data primitive whose examples are ``context.train``, which is tokenised once for all."""

    @property
    def of_end_task(self) -> bool: ...


class TextStream(Protocol):
    """Texts without end, from a corpus that is read again and again."""

    def __next__(self) -> Example:
        """The next text.

        Raises:
            DataError: a whole pass over the corpus gave none.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Where the next text is, of what JSON can hold."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken, also in another process."""
        ...


@runtime_checkable
class StreamingData(Protocol):
    """A data primitive that can be read as a stream, where its user asks for that.

    buffer: how many texts are held at a time, and drawn from in any order; None to read
        ``examples`` instead.
    """

    @property
    def buffer(self) -> int | None: ...

    def stream(self, context: DataContext) -> TextStream:
        """The texts, from the first one on.

        Raises:
            DataError: nothing usable could be read; the message says from where.
        """
        ...
