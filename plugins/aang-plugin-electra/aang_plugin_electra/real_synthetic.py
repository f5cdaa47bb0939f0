"""The output ``real-synthetic``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses


class RealSynthetic(Output):
    """For every ordinary token: was it replaced? Binary cross-entropy.

    ELECTRA, section 2 (the discriminator's loss); AANG, Figure 1 ("real / synthetic"). A token that
    was replaced by itself counts as real, as in ELECTRA. If the transform masks tokens too, a mask
    token is neither, and has no target.
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.token_regression()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """``replaced``: ``[B, T]`` float32. ``asked``: ``[B, T]`` bool, whether it has a target."""
        changed = rows.original != rows.corrupted
        masked = changed & (rows.corrupted == rows.vocabulary.mask_id)
        asked = rows.ordinary & ~masked
        return {"replaced": (changed & asked).float(), "asked": asked}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        asked = targets["asked"]
        logits = head(hidden)
        losses = binary_cross_entropy_with_logits(
            logits, targets["replaced"].to(logits.dtype), reduction="none"
        )
        return RowLosses((losses * asked).sum(dim=1), asked.sum(dim=1))
