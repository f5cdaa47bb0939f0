"""The transform drop-tokens: random deletion (Wei and Zou, EDA), and masks in what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aang_core import RegisterPrimitive, hookimpl, number_option

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from aang_core import Corruption, Vocabulary

AANG_PLUGIN_API = 1


class DropTokens:
    """Some tokens are gone; of those that are left, 15% are masked and to be predicted.

    Args:
        rate: probability of deleting an ordinary token.
    """

    def __init__(self, rate: float = 0.1) -> None:
        meaning = "a probability from 0 to 1"
        self.rate = number_option("transform option rate", rate, meaning, low=0, high=1)

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        # Imported here: listing primitives imports this module, and should not load torch.
        from aang_core import Corruption, select_tokens

        deleted = select_tokens(ordinary, generator, self.rate)
        selected = select_tokens(ordinary & ~deleted, generator)
        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected, real=~deleted)


@hookimpl
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """Register the transform."""
    summary = "tokens are deleted, and some of the others masked"
    register("drop-tokens", summary, DropTokens, provides=("masks-tokens",))
