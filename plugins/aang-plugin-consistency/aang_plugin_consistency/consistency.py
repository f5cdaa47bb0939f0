"""The output ``consistency``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.special import xlogy

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses, number_option
from aang_plugin_consistency.both_views import BothViews, balance_option, threshold_option


class Consistency(Output):
    """The end task's prediction for a corrupted text is that for the clean one (UDA).

    Xie et al., "Unsupervised Data Augmentation for Consistency Training" (NeurIPS 2020), equation 1
    and section 3.3. With p the prediction for the clean text, which has no gradient, and q that for
    the corrupted one, both by the end task's own head:

        L_i = 1[max p_i ≥ β] · KL(p_i^{1/τ} / Σ_c p_ic^{1/τ} ‖ q_i)

    The gradient is that of the paper's cross-entropy, because the target is constant; unlike it,
    the loss is zero where both agree. The mean is over all texts, as in the paper, whether their
    prediction reaches β or not.

    Args:
        temperature: τ, above zero; 1 leaves predictions as they are, less sharpens them.
        threshold: β; 0 uses every text.
        balance: how far the clean predictions of a batch are pulled towards equally frequent
            classes, 0 for not at all, 1 for completely.

    Raises:
        ConfigError: an option is out of range.

    Examples:
        >>> import torch
        >>> from aang_plugin_consistency.consistency import Consistency
        >>> clean, corrupted = [2.0, 0.0], [0.0, 0.0]
        >>> hidden = torch.tensor([[clean], [corrupted]], requires_grad=True)
        >>> output = Consistency(temperature=1.0, threshold=0.5)
        >>> output.losses(lambda hidden: hidden[:, 0], hidden, {}).sums.tolist()
        [0.0, 0.327...]
    """

    views = ("clean", "corrupted")

    def __init__(
        self, *, temperature: float = 0.4, threshold: float = 0.8, balance: float = 0.0
    ) -> None:
        self.temperature = number_option(
            "output option temperature", temperature, low=0, above_low=True
        )
        self.threshold = threshold_option(threshold)
        self.balance = balance_option(balance)

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.end_task()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """None needed: the corrupted view of row i is row N + i."""
        return {}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        both = BothViews(head, hidden, self.balance)
        sharp = (both.clean.log() / self.temperature).softmax(dim=1)
        divergences = (xlogy(sharp, sharp) - sharp * both.corrupted).sum(dim=1)
        return both.losses(divergences, self.threshold)
