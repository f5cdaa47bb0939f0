"""The output ``pseudo-label``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import nll_loss

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses
from aang_plugin_consistency.both_views import BothViews, balance_option, threshold_option


class PseudoLabel(Output):
    """The class of a corrupted text is the one predicted for the clean one (FixMatch).

    Sohn et al., "FixMatch: Simplifying Semi-Supervised Learning with Consistency and Confidence"
    (NeurIPS 2020), equation 4, with the clean text as the weakly augmented one. With p the
    prediction for the clean text, which has no gradient, and q that for the corrupted one, both by
    the end task's own head:

        L_i = −1[max p_i ≥ τ] · log q_i(argmax p_i)

    The mean is over all texts, as in the paper, whether their prediction reaches τ or not.

    Args:
        threshold: τ; 0 uses every text.
        balance: how far the clean predictions of a batch are pulled towards equally frequent
            classes, 0 for not at all, 1 for completely.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> import torch
        >>> from aang_plugin_consistency.pseudo_label import PseudoLabel
        >>> clean, corrupted = [2.0, 0.0], [0.0, 0.0]
        >>> hidden = torch.tensor([[clean], [corrupted]], requires_grad=True)
        >>> output = PseudoLabel(threshold=0.8)
        >>> output.losses(lambda hidden: hidden[:, 0], hidden, {}).sums.tolist()
        [0.0, 0.693...]
    """

    views = ("clean", "corrupted")

    def __init__(self, *, threshold: float = 0.95, balance: float = 0.0) -> None:
        self.threshold = threshold_option(threshold)
        self.balance = balance_option(balance)

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.end_task()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """None needed: the corrupted view of row i is row N + i."""
        return {}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        both = BothViews(head, hidden, self.balance)
        classes = both.clean.argmax(dim=1)
        return both.losses(nll_loss(both.corrupted, classes, reduction="none"), self.threshold)
