"""The rows of a source that never ends: a block of its texts at a time."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from aang_core.corpora.tokens import PaddedRows, TokenRows
from aang_core.objectives.stages import DocumentStatistics, Example, TextStream


class StreamRows:
    """As many rows as the buffer holds, which are others after so many steps.

    The buffer is filled, its texts are drawn in any order, and it is filled anew with the texts
    that come next. So memory is that of one buffer, and where the stream was when the buffer was
    filled is all that a checkpoint has to hold.

    buffer: texts of a block. steps: of training on each block.
    tokenize: makes rows of a block's texts.
    """

    labels = None

    def __init__(
        self,
        stream: TextStream,
        buffer: int,
        steps: int,
        tokenize: Callable[[Sequence[Example]], TokenRows],
    ) -> None:
        self._stream = stream
        self._buffer = buffer
        self._steps = steps
        self._tokenize = tokenize
        self._rows = self._next_block()
        self._statistics = self._rows

    def __len__(self) -> int:
        """Number of rows at a time."""
        return len(self._rows)

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row of this block, int64 ``[N]``."""
        return self._rows.lengths

    @property
    def truncated(self) -> int:
        """How many texts of this block were cut."""
        return self._rows.truncated

    def rows(self, indices: Tensor) -> PaddedRows:
        """The rows of this block with the given indices, int64 ``[B]``, in that order."""
        return self._rows.rows(indices)

    def document_statistics(self) -> DocumentStatistics:
        """In how many rows of the first block each token id occurs."""
        return self._statistics.document_statistics()

    def set_aside(self) -> TokenRows:
        """This block as rows that stay; what is trained on begins behind it."""
        aside, self._rows = self._rows, self._next_block()
        return aside

    def after_step(self, steps: int) -> None:
        """Go on to the next block if ``steps`` of training use this one up."""
        if steps % self._steps == 0:
            self._rows = self._next_block()

    def state_dict(self) -> dict[str, Any]:
        """Where this block begins."""
        return self._began

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Hold the block that begins where :meth:`state_dict` says."""
        if state != self._began:
            self._stream.load_state_dict(state)
            self._rows = self._next_block()

    def _next_block(self) -> TokenRows:
        self._began = self._stream.state_dict()
        return self._tokenize([next(self._stream) for _ in range(self._buffer)])
