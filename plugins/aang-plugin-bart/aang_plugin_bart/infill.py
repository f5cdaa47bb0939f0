"""The transform ``infill``."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby

import torch
from torch import Generator, Tensor

from aang_core import Corruption, Vocabulary, number_option

RATE, MEAN_LENGTH = 0.3, 3.0


class Infill:
    """Spans of tokens become a single mask token each (BART, section 2.2, "text infilling").

    The lengths of spans are drawn from a Poisson distribution until 30% of a text's tokens are
    covered; the last span is cut to fit. Every order of the spans and of the tokens between them is
    equally likely. A span of length zero is a mask token that is inserted.

    The mask of a span counts as its first token, and is selected: ``denoise`` predicts that token
    there. An inserted mask is not selected. Special tokens within a text, such as the unknown
    token, are not covered and stay, after the mask of a span around them.

    Args:
        rate: share of the ordinary tokens that spans cover.
        mean_length: λ of the Poisson distribution, at least 1.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> import torch
        >>> from aang_testing import VOCABULARY
        >>> from aang_plugin_bart.infill import Infill
        >>> ids = torch.tensor([[1, 4, 5, 6, 7, 8, 9, 10, 2]])
        >>> ordinary = (ids != 1) & (ids != 2)
        >>> generator = torch.Generator().manual_seed(0)
        >>> infilled = Infill(0.5)(ids, ordinary, VOCABULARY, generator)
        >>> infilled.ids
        tensor([[ 1,  4,  3,  6,  3, 10,  2]])
        >>> infilled.origin
        tensor([[0, 1, 2, 3, 4, 7, 8]])
    """

    def __init__(self, rate: float = RATE, mean_length: float = MEAN_LENGTH) -> None:
        self.rate = number_option(
            "option rate of transform infill", rate, low=0, high=1, above_low=True
        )
        self.mean_length = number_option(
            "option mean_length of transform infill", mean_length, low=1, high=100
        )

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        lengths = torch.poisson(torch.full(ids.shape, self.mean_length), generator).long()
        keys = torch.rand((len(ids), 2 * ids.shape[1]), generator=generator)
        parts = vocabulary.parts_texts(ids, ordinary)
        draws = zip(
            *(parts.tolist(), ordinary.tolist(), lengths.tolist(), keys.tolist()), strict=True
        )
        rows = [list(self._slots(*row)) for row in draws]
        width = max(map(len, rows))
        # Shorter rows are padded with tokens that come from nowhere and are not real.
        nothing = (-1, False, False)
        padded = [row + [nothing] * (width - len(row)) for row in rows]
        table = torch.tensor(padded, dtype=torch.int64).view(len(ids), width, 3)
        origin, masked, real = table[..., 0], table[..., 1].bool(), table[..., 2].bool()
        kept = ids.gather(1, origin.clamp(min=0))
        return Corruption(
            ids=kept.masked_fill(masked, vocabulary.mask_id),
            selected=masked & (origin >= 0),
            real=real,
            origin=origin,
        )

    def _slots(
        self, parts: list[bool], ordinary: list[bool], lengths: list[int], keys: list[float]
    ) -> Iterator[tuple[int, bool, bool]]:
        """Origin of each token of a row after the transform, whether it is a mask, and True."""
        for between, together in groupby(range(len(parts)), key=parts.__getitem__):
            places = list(together)
            if between:
                yield from ((place, False, True) for place in places)
                continue
            run = [place for place in places if ordinary[place]]
            special = [place for place in places if not ordinary[place]]
            # A text uses the draws at its own places, so that texts do not affect each other.
            spans = self._spans([lengths[place] for place in run])
            own = [key for place in run for key in keys[2 * place : 2 * place + 2]]
            slots = _with_special(filled(run, spans, own), special)
            yield from ((place, mask, True) for place, mask in slots)

    def _spans(self, lengths: list[int]) -> list[int]:
        """The first lengths that cover the share of a text; ``lengths`` has one for each token."""
        left = math.ceil(self.rate * len(lengths))
        spans = []
        for length in lengths:
            if left == 0:
                break
            spans.append(min(length, left))
            left -= spans[-1]
        return spans


def filled(run: list[int], spans: list[int], keys: list[float]) -> Iterator[tuple[int, bool]]:
    """Replace spans of a text by masks: origin of each token, and whether it is a mask.

    Args:
        run: the places of the text.
        spans: lengths of the spans.
        keys: a random number for each span, then for each token that is left.
    """
    slots = [*spans, *[None] * (len(run) - sum(spans))]
    order = sorted(range(len(slots)), key=keys.__getitem__)
    next_place = 0
    for slot in order:
        length = slots[slot]
        if length is None:
            yield run[next_place], False
            next_place += 1
        else:
            yield (run[next_place] if length else -1), True
            next_place += length


def _with_special(
    slots: Iterable[tuple[int, bool]], special: list[int]
) -> Iterator[tuple[int, bool]]:
    """The slots of a text with its special tokens, each before the first token that followed it."""
    waiting = deque(special)
    for place, mask in slots:
        while waiting and waiting[0] < place:
            yield waiting.popleft(), False
        yield place, mask
    yield from ((place, False) for place in waiting)
