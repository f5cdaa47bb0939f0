"""The output capitalisation: whether a word is written with capitals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aang_core import ConfigError, Output, RegisterPrimitive, hookimpl

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aang_core import CorruptedRows, HeadBuilder, RowLosses

AANG_PLUGIN_API = 1
NO_TARGET = -100  # The label that torch's cross-entropy ignores.


def kind_of(word: str) -> int:
    """0 for a small first letter, 1 for a capital, 2 for all capitals (two letters or more)."""
    letters = [letter for letter in word if letter.lower() != letter.upper()]
    if not letters or "\ufffd" in word:
        return NO_TARGET
    return 2 if len(letters) > 1 and word == word.upper() else int(letters[0].isupper())


class Capitalisation(Output):
    """Cross-entropy over the three ways to write a word, at every selected token."""

    def head(self, heads: HeadBuilder) -> nn.Module:
        # Imported here: listing primitives imports this module, and should not load torch.
        from torch import nn

        if all(text == text.lower() for text in heads.vocabulary.texts):
            raise ConfigError(
                "output capitalisation: the encoder's tokenizer has no capitals, so there is "
                "nothing to predict; use a cased encoder such as roberta-base, or another output"
            )
        return nn.Linear(heads.hidden_size, 3)

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        from aang_core import word_starts

        starts = word_starts(rows.original, rows.ordinary, rows.vocabulary)[rows.ordinary]
        words = [""] * int(starts.sum())
        word_of = starts.cumsum(0) - 1
        for word, token in zip(
            word_of.tolist(), rows.original[rows.ordinary].tolist(), strict=True
        ):
            words[word] += rows.vocabulary.texts[token]
        kinds = rows.original.new_tensor([kind_of(word) for word in words])
        kind = rows.original.new_full(rows.original.shape, NO_TARGET)
        kind[rows.ordinary] = kinds[word_of]
        return {"kind": kind.where(rows.selected, NO_TARGET)}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        from torch.nn.functional import cross_entropy

        from aang_core import RowLosses

        kind = targets["kind"]
        losses = cross_entropy(head(hidden).transpose(1, 2), kind, reduction="none")
        return RowLosses(losses.sum(dim=1), (kind != NO_TARGET).sum(dim=1))


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Register the output; without masked tokens the answer would be visible in the input."""
    needs = ("text", "masks-tokens")
    register("capitalisation", "is a word written with capitals?", Capitalisation, requires=needs)
