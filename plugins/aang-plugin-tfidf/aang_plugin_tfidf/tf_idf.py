"""The output ``tf-idf``."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses


class TfIdf(Output):
    """Squared error of each ordinary token's TF-IDF in its row.

    AANG, section 3, stage 4, which leaves the weighting open. Here tf is the token's count in the
    row divided by the row's number of ordinary tokens, and idf = ln((1 + N) / (1 + df)) + 1 for N
    documents of which df contain the token: smoothed, so that it is finite for a token in no
    document, and at least one for df ≤ N, so that it is not zero for a token in every document.

    tf · idf is about 0.01 in a row of a hundred tokens, and its square would vanish next to a
    cross-entropy. It is divided by its root mean square over the row's ordinary tokens. Predicting
    zero then costs exactly one, whatever the length of the row and the size of the collection, and
    a value of two marks a token twice as informative as usual in its document.
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.token_regression()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """``value``: ``[B, T]`` float32, zero where not ordinary. ``ordinary``: ``[B, T]`` bool."""
        ordinary = rows.ordinary
        length = ordinary.sum(dim=1, keepdim=True).clamp(min=1)
        document, words = rows.original, ordinary
        if rows.before is not None:
            document, words = rows.before.ids, rows.before.ordinary
        # [B, T, S], as large as the attention mask; counts over the vocabulary would be [B, V].
        same = rows.original.unsqueeze(2) == document.unsqueeze(1)
        count = (same & words.unsqueeze(1)).sum(dim=2)
        statistics = rows.statistics
        documents_with = statistics.document_frequency[rows.original]
        idf = torch.log((1 + statistics.documents) / (1 + documents_with)) + 1
        # tf's denominator is the same for the whole row, so it cancels in the division by the root
        # mean square below.
        value = torch.where(ordinary, count * idf, 0.0)
        mean_square = value.square().sum(dim=1, keepdim=True) / length
        # A row without ordinary tokens has no targets; the clamp keeps its zeros from being 0/0.
        return {"value": value / mean_square.sqrt().clamp(min=1e-12), "ordinary": ordinary}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        ordinary = targets["ordinary"]
        errors = (head(hidden) - targets["value"]).square()
        return RowLosses((errors * ordinary).sum(dim=1), ordinary.sum(dim=1))
