"""The representation ``left-to-right``."""

from torch import Generator, Tensor


class LeftToRight:
    """Token i sees every token j ≤ i (GPT, section 3.1; AANG, section 3, stage 3)."""

    def __call__(self, real: Tensor, generator: Generator) -> Tensor:
        rows, tokens = real.shape
        return real.unsqueeze(1).expand(rows, tokens, tokens).tril()
