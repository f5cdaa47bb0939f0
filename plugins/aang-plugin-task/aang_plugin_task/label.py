"""The outputs ``end-task`` and ``own-label``."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from aang_core import CorruptedRows, HeadBuilder, PluginError, RowLosses


class Label:
    """The label of a labelled text, predicted from the first token of the corrupted input.

    With the end task's labels it is AANG, section 3 (the family O = E_O) and section 6; with those
    of another task, supervised multitask learning. The head has the shape of the end task's head,
    but belongs to the objective alone.
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        return heads.classification()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """``label``: ``[B]`` int64.

        Raises:
            PluginError: the data provides labels but its examples have none.
        """
        if rows.labels is None:
            raise PluginError(
                "there are no labels to predict: the objective's data primitive declares "
                "'labels:end-task' or 'labels:own' but yields examples without labels; "
                "correct what it provides"
            )
        return {"label": rows.labels}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        label = targets["label"]
        losses: Tensor = cross_entropy(head(hidden), label, reduction="none")
        # One target per row, whatever the transform selected.
        return RowLosses(losses, label.new_ones(label.shape))
