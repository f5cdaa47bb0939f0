"""The output ``denoise``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from aang_core import CorruptedRows, HeadBuilder, RowLosses


class Denoise:
    """Cross-entropy of the original token at every selected position.

    BERT, section 3.1 (Task #1); AANG, section 3, stage 4. Only the selected positions are decoded:
    a 50k-word decoder over every token of RoBERTa-base costs half as much as its body, over 15% of
    them a fourteenth.
    """

    # Where the S selected tokens of a batch lie is found here, on the CPU, because looking them up
    # in a mask on an accelerator would make the host wait. They are kept as flat lists [S] rather
    # than as rows [B, M] padded to the longest: the largest of B binomial counts with T = 128,
    # p = 0.15 is 1.4 to 1.5 times their mean for B = 16 to 64 when all rows are full, and 1.6 to
    # 1.9 times when lengths vary down to 0.4 T, so 30 to 90% of the padded vocabulary logits, the
    # largest tensor of a step, would be thrown away.

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.language_model()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """Row, position and original token of each selected token, ``[S]``, and their counts.

        ``counts`` is ``[B]``; S is its sum. All are int64.
        """
        row, position = rows.selected.nonzero(as_tuple=True)
        return {
            "counts": rows.selected.sum(dim=1),
            "row": row,
            "position": position,
            "token": rows.original[row, position],
        }

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        rows, tokens, _ = hidden.shape
        row = targets["row"]
        selected = hidden.flatten(0, 1).index_select(0, row * tokens + targets["position"])
        losses = cross_entropy(head(selected), targets["token"], reduction="none")
        return RowLosses(losses.new_zeros(rows).index_add(0, row, losses), targets["counts"])
