"""The representation ``bidirectional``."""

from torch import Generator, Tensor


class Bidirectional:
    """Every token sees every token of its row, before and after it (BERT, section 3)."""

    def __call__(self, real: Tensor, generator: Generator) -> Tensor:
        rows, tokens = real.shape
        return real.unsqueeze(1).expand(rows, tokens, tokens)
