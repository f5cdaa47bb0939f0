"""Long texts in pieces that fit a row, and a stream of them."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from aang.corpora import well_formed
from transformers import PreTrainedTokenizerBase

from aang_core.objectives.stages.data import Example, TextStream


class Cutter:
    """Cuts a text into pieces of at most ``max_length`` tokens, including special ones.

    A piece ends before a word if its second half has a place to do so. A piece is text again and is
    tokenised like any other, so readers need not know about pieces.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._room = max(1, max_length - tokenizer.num_special_tokens_to_add(pair=False))

    def pieces(self, example: Example) -> Iterator[Example]:
        """The pieces of an example; an example with two texts stays whole."""
        if example.text_pair is not None:
            yield example
            return
        for text in self._cut(well_formed(example.text)):
            yield replace(example, text=text)

    def _cut(self, text: str, *, in_halves: bool = False) -> Iterator[str]:
        # A word may take more tokens at the start of a row than in the middle of one, so that a
        # piece may not fit. A character that takes more tokens than a row stays whole.
        if self._fits(text) or len(text) == 1:
            yield text
            return
        ends = [_middle(text)] if in_halves else self._ends(text)
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
            if piece := text[start:end].strip():
                yield from self._cut(piece, in_halves=True)

    def _fits(self, text: str) -> bool:
        ids = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return len(ids) <= self._room

    def _ends(self, text: str) -> list[int]:
        """Where pieces end, in characters; the middle if the tokenizer has no offsets."""
        if not self._tokenizer.is_fast:
            return [_middle(text)]
        encoded = self._tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        starts = [start for start, _ in encoded["offset_mapping"]]
        ends: list[int] = []
        first = 0
        while first + self._room < len(starts):
            last = first + self._room
            near = range(last, last - (self._room + 1) // 2, -1)
            cut = next((i for i in near if _new_word(text, starts[i])), last)
            # Several tokens may make up one character, which cannot be cut.
            if starts[cut] > (ends[-1] if ends else 0):
                ends.append(starts[cut])
            first = cut
        return ends


def _new_word(text: str, start: int) -> bool:
    return start > 0 and (text[start].isspace() or text[start - 1].isspace())


def _middle(text: str) -> int:
    """The space nearest to the middle, or else the middle itself; never at either end."""
    middle = len(text) // 2
    before, after = text.rfind(" ", 1, middle + 1), text.find(" ", middle, -1)
    spaces = [place for place in (before, after) if place > 0]
    return min(spaces, key=lambda place: abs(place - middle), default=max(1, middle))


class PieceStream:
    """The pieces of a stream of texts, except those that are held out.

    Args:
        texts: the stream.
        cutter: cuts them.
        held_out: digests of pieces that are always skipped, wherever they occur in the texts.
    """

    def __init__(self, texts: TextStream, cutter: Cutter, held_out: Collection[bytes]) -> None:
        self._texts = texts
        self._cutter = cutter
        self._held_out = held_out
        self._began = texts.state_dict()
        self._pieces: list[Example] = []
        self._given = 0

    def __next__(self) -> Example:
        while self._given == len(self._pieces):
            self._next_text()
        self._given += 1
        return self._pieces[self._given - 1]

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`aang_core.objectives.stages.TextStream.state_dict`."""
        return {"text": self._began, "given": self._given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See :meth:`aang_core.objectives.stages.TextStream.load_state_dict`."""
        given = state["given"]
        self._texts.load_state_dict(state["text"])
        self._began, self._pieces, self._given = self._texts.state_dict(), [], 0
        if given:
            self._next_text()
            self._given = min(given, len(self._pieces))

    def _next_text(self) -> None:
        self._began = self._texts.state_dict()
        pieces = self._cutter.pieces(next(self._texts))
        self._pieces = [piece for piece in pieces if digest(piece) not in self._held_out]
        self._given = 0


def pieces_of(examples: Iterable[Example], cutter: Cutter) -> Iterator[Example]:
    """The pieces of all examples, in their order."""
    for example in examples:
        yield from cutter.pieces(example)


def digest(piece: Example) -> bytes:
    """A fingerprint of the piece."""
    return hashlib.blake2b(piece.text.encode(), digest_size=16).digest()
