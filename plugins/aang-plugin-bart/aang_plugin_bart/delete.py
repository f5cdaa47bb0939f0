"""The transform ``delete``."""

from torch import Generator, Tensor

from aang_core import SELECTION_RATE, Corruption, Vocabulary, number_option, select_tokens


class Delete:
    """Random tokens are deleted (BART, section 2.2, "token deletion").

    The tokens after a deleted one move up, so nothing shows where it was. Of the tokens that are
    left, 15% are selected, as by ``no-op``.

    Args:
        rate: probability of deleting an ordinary token.

    Raises:
        ConfigError: ``rate`` is not between 0 and 1.

    Examples:
        >>> import torch
        >>> from aang_testing import VOCABULARY
        >>> from aang_plugin_bart.delete import Delete
        >>> ids = torch.tensor([[1, 4, 5, 6, 7, 2]])
        >>> ordinary = (ids != 1) & (ids != 2)
        >>> generator = torch.Generator().manual_seed(1)
        >>> deleted = Delete(0.5)(ids, ordinary, VOCABULARY, generator)
        >>> deleted.ids[deleted.real]
        tensor([1, 6, 2])
    """

    def __init__(self, rate: float = SELECTION_RATE) -> None:
        self.rate = number_option(
            "option rate of transform delete", rate, low=0, high=1, above_low=True, below_high=True
        )

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        deleted = select_tokens(ordinary, generator, self.rate)
        selected = select_tokens(ordinary & ~deleted, generator)
        return Corruption(ids, selected, real=~deleted)
