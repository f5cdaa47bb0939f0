"""The representation ``random-factorized``."""

import torch
from torch import Generator, Tensor

from aang_core import number_option


class RandomFactorized:
    """A new random order of the tokens for each row; a token sees itself and those before it.

    XLNet, section 2.2 (equation 3: the order is sampled, the tokens keep their positions); AANG,
    section 3, stage 3. The first token, which classification reads, comes last in every order, so
    it sees the whole row.

    Args:
        pairs: instead of an order, keep each pair of tokens independently with this probability.
            The code released with AANG does so with 0.6, with one mask for all rows of a batch, in
            which the first token is like any other and padding is seen. Here every row has its own
            mask and no token sees padding. The diagonal is removed; the first token still sees the
            whole row.

    Raises:
        ConfigError: ``pairs`` is neither None nor a number in (0, 1].
    """

    def __init__(self, pairs: float | None = None) -> None:
        if pairs is not None:
            pairs = number_option(
                "option pairs of random-factorized", pairs, low=0, high=1, above_low=True
            )
        self.pairs = pairs

    def __call__(self, real: Tensor, generator: Generator) -> Tensor:
        if self.pairs is None:
            return _ordered(real, generator)
        return _scattered(real, generator, self.pairs)


def _ordered(real: Tensor, generator: Generator) -> Tensor:
    """A total order per row.

    A total order is transitive, so what a token learns through any number of layers still comes
    from the tokens before it. This requires that only the first token sees the first token, because
    after one layer it contains the whole row. Its last place in the order ensures that.
    """
    keys = torch.rand(real.shape, generator=generator, device=real.device)
    keys[:, 0] = 2.0
    # Compare ranks rather than keys: a long row has some equal keys, and those two tokens would
    # see each other.
    rank = keys.argsort(dim=1).argsort(dim=1)
    # XLNet's query stream (section 2.3) predicts a token without its content and so hides it from
    # itself. An encoder has one stream: a token must see its own input, which the transform has
    # corrupted already, or the first in the order would see nothing.
    return (rank.unsqueeze(1) <= rank.unsqueeze(2)) & real.unsqueeze(1)


def _scattered(real: Tensor, generator: Generator, pairs: float) -> Tensor:
    """Keep each pair of different tokens with probability ``pairs``."""
    rows, tokens = real.shape
    drawn = torch.rand((rows, tokens, tokens), generator=generator, device=real.device)
    itself = torch.eye(tokens, dtype=torch.bool, device=real.device)
    sees = (drawn < pairs) & ~itself & real.unsqueeze(1)
    sees[:, 0] = real
    # The released code can leave a row empty, which becomes NaN after the softmax.
    empty = ~sees.any(dim=2, keepdim=True)
    return sees | (empty & itself & real.unsqueeze(1))
