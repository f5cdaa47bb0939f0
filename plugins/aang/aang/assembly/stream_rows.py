"""The rows of a stream of texts, one block at a time."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from aang.corpora.tokens import PaddedRows, TokenRows
from aang_core.errors import DataError
from aang_core.objectives.stages import DocumentStatistics, Example, TextStream
from aang_core.tasks.processes import ALONE, Processes

_log = logging.getLogger(__name__)

MOST_LEFT_OUT = 100_000
"""Texts of dev and test in a row, after which a stream is taken to hold nothing else."""


@dataclass(eq=False)
class NewTexts:
    """A stream without the texts of dev and test.

    Attributes:
        stream: all texts.
        held_out: says whether a text is in dev or test.
        name: what messages call the stream.
    """

    stream: TextStream
    held_out: Callable[[Example], str | None]
    name: str
    _noted: bool = False

    def __next__(self) -> Example:
        """The next text.

        Raises:
            DataError: the stream seems to have no other texts.
        """
        for _ in range(MOST_LEFT_OUT):
            example = next(self.stream)
            part = self.held_out(example)
            if part is None:
                return example
            if not self._noted:
                self._noted = True
                _log.warning(
                    "%s: texts that are also in %s of the end task are left out, such as %.60r",
                    *(self.name, part, example.text),
                )
        raise DataError(
            f"{self.name}: {MOST_LEFT_OUT:,} texts in a row are also in dev or test of the end "
            "task. Nothing may train on those; give other texts."
        )

    def state_dict(self) -> dict[str, Any]:
        """See `TextStream.state_dict`."""
        return self.stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `TextStream.load_state_dict`."""
        self.stream.load_state_dict(state)


@dataclass(eq=False)
class StreamRows:
    """The rows of one block of a stream, replaced by the next block every ``steps`` steps.

    The texts of a block are drawn in random order, then the next block is read. Memory therefore
    holds one block, and a checkpoint needs only the position where the block begins.

    Attributes:
        stream: the texts.
        buffer: texts per block.
        steps: training steps per block.
        tokenize: turns the texts of a block into rows.
        name: what messages call the texts.
        processes: the processes that read the same stream, each for itself.
    """

    stream: TextStream
    buffer: int
    steps: int
    tokenize: Callable[[Sequence[Example]], TokenRows]
    name: str = "the text"
    processes: Processes = ALONE

    def __post_init__(self) -> None:
        self._aside: frozenset[Example] = frozenset()
        self._rows = self._next_block()
        self._statistics = self._rows

    def __len__(self) -> int:
        """Number of rows in this block."""
        return len(self._rows)

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row of this block, int64 ``[N]``."""
        return self._rows.lengths

    @property
    def truncated(self) -> int:
        """How many texts of this block were cut."""
        return self._rows.truncated

    @property
    def digest(self) -> str:
        """Fingerprint of this block."""
        return self._rows.digest

    def rows(self, indices: Tensor) -> PaddedRows:
        """The rows of this block with the given indices, int64 ``[B]``, in that order."""
        return self._rows.rows(indices)

    def document_statistics(self) -> DocumentStatistics:
        """In how many rows of the first block each token id occurs."""
        return self._statistics.document_statistics()

    def set_aside(self, drawn_from: Callable[[int], Tensor]) -> TokenRows:
        """Take texts of this block out of the stream, and move on to the next block.

        A stream begins anew after its last text, so the same texts are skipped in later passes.

        Args:
            drawn_from: draws indices from a number of texts.

        Returns:
            Their rows, all different.

        Raises:
            DataError: all texts of the block are the same.
        """
        after = self.stream.state_dict()
        self.stream.load_state_dict(self._began)
        texts = list(dict.fromkeys(next(self.stream) for _ in range(self.buffer)))
        self.stream.load_state_dict(after)
        if len(texts) < 2:
            raise DataError(f"{self.name}: holds the same text again and again: {texts[0].text!r}")
        aside = [texts[index] for index in drawn_from(len(texts)).tolist()]
        self._aside = frozenset(aside)
        self._rows = self._next_block()
        return self.tokenize(aside)

    def after_step(self, steps: int) -> None:
        """Move on to the next block if this one is used up after ``steps`` training steps.

        Raises:
            DataError: there is nothing left to read.
            SharedError: another process cannot read the next block, or reads another one.
        """
        if steps % self.steps == 0:
            with self.processes.all_or_none():
                self._rows = self._next_block()
            if self.processes.size > 1:
                self.processes.refuse_if_different(
                    self.digest,
                    lambda first, other: (
                        f"{self.name}: the next {self.buffer} texts differ from those of the "
                        "first process, so a file has changed there, or could not be read"
                    ),
                )

    def state_dict(self) -> dict[str, Any]:
        """The position in the stream where this block begins."""
        return self._began

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Read the block that begins at a position returned by :meth:`state_dict`."""
        if state != self._began:
            self.stream.load_state_dict(state)
            self._rows = self._next_block()

    def _next_block(self) -> TokenRows:
        self._began = self.stream.state_dict()
        texts: list[Example] = []
        while len(texts) < self.buffer:
            if (text := next(self.stream)) not in self._aside:
                texts.append(text)
        return self.tokenize(texts)
