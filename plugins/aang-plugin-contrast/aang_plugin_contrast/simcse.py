"""The output ``simcse``."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from aang_core import CorruptedRows, HeadBuilder, Output, RowLosses, number_option
from aang_plugin_contrast.projection import Projection, similarities


class SimCSE(Output):
    """Two views of a text are alike, other texts are not (Gao et al., EMNLP 2021, eq. 4).

    The views differ in dropout and, with a transform that corrupts, in what it draws. With z and z'
    the first tokens of the two views of N rows, after a tanh layer that belongs to this objective
    alone (section 3 there), on the unit sphere:

        L_i = −log exp(z_i·z'_i / τ) / Σ_j exp(z_i·z'_j / τ)

    No labels are needed. Copies of a text in a batch are not compared, as they should be alike. A
    text without another one to compare it with contributes nothing.

    Args:
        temperature: τ; above zero.

    Raises:
        ConfigError: the temperature is not above zero.
    """

    couples_rows = True
    views = ("corrupted", "corrupted")

    def __init__(self, *, temperature: float = 0.05) -> None:
        self.temperature = number_option(
            "output option temperature", temperature, low=0, above_low=True
        )

    def head(self, heads: HeadBuilder) -> nn.Module:
        return Projection(heads.hidden_size, heads.hidden_size, nn.Tanh())

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """``ids``: ``[B, T]`` int64, the texts before the transform, which tell copies apart.

        View 2 of row i is row N + i.
        """
        return {"ids": rows.original if rows.before is None else rows.before.ids}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        n = len(hidden) // 2
        across = similarities(head, hidden, self.temperature)[:n, n:]
        ids = targets["ids"][:n]
        copies = (ids.unsqueeze(0) == ids.unsqueeze(1)).all(dim=-1)
        itself = torch.eye(n, dtype=torch.bool, device=ids.device)
        across = across.masked_fill(copies & ~itself, -torch.inf)
        of_first_views = -log_softmax(across, dim=1).diagonal()
        # The second views only serve as comparisons for the first, and have no loss of their own.
        sums = torch.cat([of_first_views, torch.zeros_like(of_first_views)])
        compared = ~copies.all(dim=1)
        return RowLosses(sums, torch.cat([compared, torch.zeros_like(compared)]).long())
