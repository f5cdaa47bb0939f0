"""The output ``denoise``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses


class Denoise(Output):
    """Cross-entropy of the original token at every selected position.

    BERT, section 3.1 (Task #1); AANG, section 3, stage 4. Only the selected positions are decoded:
    a 50k-word decoder costs half as much as the body of RoBERTa-base if it decodes every token, and
    a fourteenth if it decodes 15% of them.
    """

    # The positions of the S selected tokens are computed here, on the CPU, because finding them in
    # a mask on an accelerator would make the host wait. They are flat lists [S] rather than rows
    # [B, M] padded to the longest: the largest of B binomial counts with T = 128, p = 0.15 is 1.4
    # to 1.5 times their mean for B = 16 to 64 when all rows are full, and 1.6 to 1.9 times when
    # lengths vary down to 0.4 T. So 30 to 90% of the padded vocabulary logits, the largest tensor
    # of a step, would be wasted.

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
        losses = cross_entropy(_logits(head, hidden, targets), targets["token"], reduction="none")
        sums = losses.new_zeros(len(hidden)).index_add(0, targets["row"], losses)
        return RowLosses(sums, targets["counts"])

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """Number of selected tokens of each row that the head predicts correctly, int64 ``[B]``."""
        right = (_logits(head, hidden, targets).argmax(dim=-1) == targets["token"]).long()
        return right.new_zeros(len(hidden)).index_add(0, targets["row"], right)


def _logits(head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
    """Logits of the selected tokens only, ``[S, V]``."""
    place = targets["row"] * hidden.shape[1] + targets["position"]
    logits: Tensor = head(hidden.flatten(0, 1).index_select(0, place))
    return logits
