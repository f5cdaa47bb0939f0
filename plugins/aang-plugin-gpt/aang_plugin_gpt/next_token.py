"""The output ``next-token``."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from aang_core import ConfigError, CorruptedRows, HeadBuilder, Output, RowLosses


class NextToken(Output):
    """Cross-entropy of the token that comes next in the row's reading order.

    GPT, section 3.1 (equation 1), for left to right; ELMo, section 3.1, for both directions; XLNet,
    section 2.2 (equation 3), for a random order. The order follows from the representation: each
    token sees itself and the tokens before it, so the token at place r of the order sees r tokens.
    The token at place r is predicted from the one at place r − 1. An order is transitive, so in no
    layer does that token see the predicted one or any token that sees it.

    In a random order a token does not know which position comes next, and XLNet adds a second
    stream of queries that do (section 2.3). An encoder has one stream, so the head gets the
    information instead: it adds a vector of the position to be predicted, zero at first, to the
    hidden state. All ordinary tokens except the first of the order are predicted, whatever the
    transform selected.
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        return NextTokenHead(heads.positions(), heads.language_model())

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """For each prediction, ``[S]``: row, position read, position predicted, and its token.

        ``counts`` is ``[B]``; S is its sum. All are int64.

        Raises:
            ConfigError: the representation is not an order of the row, as with the option ``pairs``
                of ``random-factorized``.
        """
        place = _places(rows.sees, rows.real)
        order = place.argsort(dim=1)
        before = torch.zeros_like(order).scatter(1, order[:, 1:], order[:, :-1])
        predicted = rows.ordinary & (place > 1)
        row, position = predicted.nonzero(as_tuple=True)
        return {
            "counts": predicted.sum(dim=1),
            "row": row,
            "read": before[row, position],
            "position": position,
            "token": rows.original[row, position],
        }

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        rows, tokens, _ = hidden.shape
        row = targets["row"]
        read = hidden.flatten(0, 1).index_select(0, row * tokens + targets["read"])
        logits = head(read, targets["position"])
        losses = cross_entropy(logits, targets["token"], reduction="none")
        return RowLosses(losses.new_zeros(rows).index_add(0, row, losses), targets["counts"])


class NextTokenHead(nn.Module):
    """Hidden states ``[S, H]`` and positions to predict ``[S]`` → vocabulary logits ``[S, V]``."""

    def __init__(self, positions: nn.Module, language_model: nn.Module) -> None:
        super().__init__()
        self.positions = positions
        self.language_model = language_model

    def forward(self, hidden: Tensor, position: Tensor) -> Tensor:
        logits: Tensor = self.language_model(hidden + self.positions(position))
        return logits


def _places(sees: Tensor, real: Tensor) -> Tensor:
    """Place of each real token in its row's order, from 1 on, ``[B, T]``; padding comes last."""
    tokens = real.shape[1]
    place = (sees & real.unsqueeze(1)).sum(dim=2).masked_fill(~real, tokens + 1)
    ordered = place.unsqueeze(1) <= place.unsqueeze(2)
    both = real.unsqueeze(1) & real.unsqueeze(2)
    if not torch.equal(ordered & both, sees & both):
        raise ConfigError(
            "output next-token needs a representation in which every token sees itself and the "
            "tokens before it in one order, and this one has no such order: leave out the option "
            "pairs of random-factorized, or use another representation"
        )
    return place
