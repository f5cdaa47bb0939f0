"""The output stage: what is predicted, and its loss (AANG, section 3, stage 4).

It does not import torch, so that listing a plug-in whose outputs and hooks share a module does not
either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn

    from aang_core.objectives.stages.rows import CorruptedRows, Vocabulary
    from aang_core.tasks.task import RowLosses

View = Literal["corrupted", "clean"]
"""How a row is shown to the encoder: corrupted, drawn anew for each view, or unchanged."""


class HeadBuilder(Protocol):
    """Makes heads that fit the shared encoder; every call returns a new module.

    Its parameters are new too, except those of the decoder (:meth:`language_model`) and of the end
    task's head (:meth:`end_task`), which every call shares.

    If none of these predicts what you need, make a module of your own: ``hidden_size`` is H, the
    size of the hidden states that it receives.

    Examples:
        >>> import torch
        >>> from aang_testing import SmallHeads
        >>> heads = SmallHeads()  # a HeadBuilder for tests, with a hidden size of 8
        >>> heads.token_regression()(torch.zeros(2, 5, heads.hidden_size)).shape
        torch.Size([2, 5])
    """

    @property
    def hidden_size(self) -> int:
        """Size of the encoder's hidden states, H."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's tokens.

        An output that cannot work with them raises :class:`~aang_core.errors.ConfigError` in
        :meth:`Output.head`, before anything is trained or written.
        """
        ...

    def language_model(self) -> nn.Module:
        """Hidden states ``[S, H]`` → vocabulary logits ``[S, V]``.

        Starts as a copy of the encoder's pre-trained LM head if it has one. The decoder (the V × H
        matrix) is shared, and tied to the word embeddings if the model ties it.
        """
        ...

    def classification(self) -> nn.Module:
        """Hidden states ``[B, T, H]`` → logits ``[B, C]`` over the classes of the objective's data.

        They are the end task's classes, unless the data has labels of its own. The parameters are
        new and belong to this objective alone. The end task's head may also compute one number, or
        logits ``[B, T, C]`` for tags of tokens; :meth:`label_losses` knows what its labels are.
        """
        ...

    def label_losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        """The loss of each row, from what :meth:`classification` computes and the row's labels.

        It is cross-entropy for classes, and otherwise what the end task itself is trained with.
        """
        ...

    def end_task(self) -> nn.Module:
        """Hidden states ``[B, T, H]`` → logits ``[B, C]`` over the end task's classes.

        A new module around the end task's own head: what trains one trains the other. Like every
        head, it takes no part in the signals, which are about the body.
        """
        ...

    def positions(self) -> nn.Module:
        """Positions ``[S]`` int64 → vectors ``[S, H]``, initialised to zero."""
        ...

    def token_regression(self) -> nn.Module:
        """Hidden states ``[..., H]`` → one number per token, ``[...]``."""
        ...


class Output(ABC):
    """The base class of output primitives, which are made by calling the registered target.

    Attributes:
        views: how often, and how, each row is shown to the encoder. ``("corrupted", "corrupted")``
            asks for two draws of the corruption (and of dropout), ``("clean", "corrupted")`` for
            the row unchanged and corrupted. The views share the rows of a step's budget.
        couples_rows: whether a row's loss depends on other rows. Such rows are never split into
            several batches or over several processes.

    Examples:
        >>> from aang_core import Output, RowLosses
        >>> class WasSelected(Output):
        ...     def head(self, heads):
        ...         return heads.token_regression()
        ...     def targets(self, rows):
        ...         return {"selected": rows.selected.float(), "ordinary": rows.ordinary}
        ...     def losses(self, head, hidden, targets):
        ...         ordinary = targets["ordinary"]
        ...         errors = (head(hidden) - targets["selected"]).square()
        ...         return RowLosses((errors * ordinary).sum(dim=1), ordinary.sum(dim=1))
        >>> WasSelected().views
        ('corrupted',)
    """

    views: Sequence[View] = ("corrupted",)
    couples_rows: bool = False

    @abstractmethod
    def head(self, heads: HeadBuilder) -> nn.Module:
        """A new head for one objective."""

    @abstractmethod
    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """The named tensors that :meth:`losses` needs; their meaning is up to the output."""

    @abstractmethod
    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Loss of each row, computed from its hidden states ``[B, T, H]``.

        A row without targets has a sum of zero and a count of zero, never a NaN.
        """

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor | None:
        """Number of targets of each row that the head predicts correctly, int64 ``[B]``.

        The targets are those that :meth:`losses` counts. None, the default, if the output does not
        count correct predictions; then no accuracy is reported.
        """
        return None
