"""The outputs ``end-task`` and ``own-label``."""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from aang_core import CorruptedRows, HeadBuilder, Output, PluginError, RowLosses


class Label(Output):
    """The label of a labelled text, predicted from the corrupted input.

    With the end task's labels it is AANG, section 3 (the family O = E_O) and section 6; with those
    of another task, supervised multitask learning. The head has the shape of the end task's head,
    but belongs to the objective alone: it reads the first token, or every token if tokens have
    labels. The loss is the end task's own.
    """

    def __init__(self) -> None:
        self._losses: Callable[[Tensor, Tensor], RowLosses] | None = None

    def head(self, heads: HeadBuilder) -> nn.Module:
        self._losses = heads.label_losses
        return heads.classification()

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """``label``: ``[B]`` int64 classes, or the labels that the end task's rows or tokens have.

        Raises:
            PluginError: the data provides labels but its examples have none.
        """
        labels = rows.token_labels if rows.labels is None else rows.labels
        if labels is None:
            raise PluginError(
                "there are no labels to predict: the objective's data primitive declares "
                "'labels:end-task' or 'labels:own' but yields examples without labels; "
                "correct what it provides"
            )
        return {"label": labels}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        assert self._losses is not None  # head() is called first
        return self._losses(head(hidden), targets["label"])
