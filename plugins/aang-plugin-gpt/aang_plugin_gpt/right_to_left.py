"""The representation ``right-to-left``."""

from torch import Generator, Tensor


class RightToLeft:
    """Token i sees every token j ≥ i (ELMo, section 3.1; AANG, section 3, stage 3)."""

    def __call__(self, real: Tensor, generator: Generator) -> Tensor:
        rows, tokens = real.shape
        return real.unsqueeze(1).expand(rows, tokens, tokens).triu()
