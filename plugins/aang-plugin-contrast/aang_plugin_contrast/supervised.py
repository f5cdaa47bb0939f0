"""The output ``supervised-contrast``."""

import logging
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from aang_core import (
    ConfigError,
    CorruptedRows,
    HeadBuilder,
    Output,
    PluginError,
    RowLosses,
    View,
    number_option,
    whole_number_option,
)
from aang_plugin_contrast.projection import Projection, similarities

_log = logging.getLogger(__name__)


class SupervisedContrast(Output):
    """Contrast between classes (Khosla et al., 2020, eq. 2; Gunel et al., ICLR 2021, eq. 2).

    For every row i, with z its projected first token on the unit sphere and P(i) the other rows of
    its class in the batch:

        L_i = −1/|P(i)| Σ_{p ∈ P(i)} log exp(z_i·z_p / τ) / Σ_{a ≠ i} exp(z_i·z_a / τ)

    A row that is alone in its class contributes nothing, so batches should be large: a single view
    of 32 different rows is enough, and two views of fewer rows do worse.

    Args:
        temperature: τ; above zero.
        projection: size of the projection before z; 0 uses the first token as it is, as Gunel et
            al. do.
        views: 1, or 2 for two draws of dropout and corruption of each row.

    Raises:
        ConfigError: an option is out of range.
    """

    couples_rows = True

    def __init__(self, *, temperature: float = 0.1, projection: int = 128, views: int = 1) -> None:
        self.temperature = number_option(
            "output option temperature", temperature, low=0, above_low=True
        )
        if isinstance(views, bool) or views not in (1, 2):
            raise ConfigError(f"output option views is {views!r}; give 1 or 2")
        self.projection = whole_number_option("output option projection", projection, low=0)
        one: tuple[View, ...] = ("corrupted",)
        self.views = one * views
        self._told = False

    def head(self, heads: HeadBuilder) -> nn.Module:
        return Projection(heads.hidden_size, self.projection)

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """The class of every row, int64 ``[B]``.

        Raises:
            PluginError: the rows have no labels.
        """
        if rows.labels is None:
            raise PluginError(
                "output supervised-contrast needs labelled rows, but its data has no labels"
            )
        if not self._told and len(rows.labels.unique()) == len(rows.labels):
            self._told = True
            _log.warning(
                "supervised-contrast: all %d rows of a batch have different classes, so it "
                "contributes nothing there; use more rows per step. This is reported once",
                len(rows.labels),
            )
        return {"labels": rows.labels}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        labels = targets["labels"]
        alike = similarities(head, hidden, self.temperature)
        itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        # Not minus infinity, or a row that is alone would become NaN.
        logs = log_softmax(alike.masked_fill(itself, torch.finfo(alike.dtype).min / 2), dim=1)
        positive = (labels.unsqueeze(0) == labels.unsqueeze(1)) & ~itself
        counts = positive.sum(dim=1)
        sums = -logs.masked_fill(~positive, 0.0).sum(dim=1) / counts.clamp(min=1)
        return RowLosses(sums, (counts > 0).long())
