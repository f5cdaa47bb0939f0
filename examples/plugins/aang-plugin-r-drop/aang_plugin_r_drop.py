"""The output r-drop: Wu et al., R-Drop: Regularized Dropout for Neural Networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aang_core import Output, RegisterPrimitive, hookimpl

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aang_core import CorruptedRows, HeadBuilder, RowLosses

AANG_PLUGIN_API = 1


class RDrop(Output):
    """The end task's head predicts the same from two draws of dropout, and of the corruption.

    The loss of a row is the mean of both Kullback-Leibler divergences between the two predictions
    (section 2.1, equation 2). The labels play no part.
    """

    views = ("corrupted", "corrupted")

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.end_task()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        return {}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        # Imported here: listing primitives imports this module, and should not load torch.
        import torch

        from aang_core import RowLosses

        one, other = head(hidden).log_softmax(dim=1).chunk(2)
        # KL(p‖q) + KL(q‖p) = Σ (p − q)(log p − log q)
        losses = ((one.exp() - other.exp()) * (one - other)).sum(dim=1) / 2
        # The first view has the loss of the pair, the second has none.
        none = losses.new_zeros(len(losses))
        return RowLosses(torch.cat([losses, none]), torch.cat([none + 1, none]).long())


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Register the output."""
    register(
        "r-drop",
        "two draws of dropout predict the same label",
        RDrop,
        provides=("several-views",),
        requires=("text", "end-task:single-label", "sentence-representation"),
    )
