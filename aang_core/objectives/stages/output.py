"""The output stage: what is predicted, and its loss (AANG, section 3, stage 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aang_core.objectives.stages.tokens import Vocabulary
from aang_core.tasks.task import RowLosses


@dataclass(frozen=True)
class DocumentStatistics:
    """Document frequencies of a data source, counted over its own texts.

    Attributes:
        documents: number of texts, N.
        document_frequency: ``[V]`` int64, the number of texts that contain each token id.

    Examples:
        >>> import torch
        >>> from aang_core import DocumentStatistics
        >>> statistics = DocumentStatistics(10, torch.tensor([0, 10, 4]))
        >>> torch.log(statistics.documents / statistics.document_frequency[1:]).tolist()
        [0.0, 0.916290...]
    """

    documents: int
    document_frequency: Tensor


@dataclass(frozen=True)
class RowsBefore:
    """Rows before a transform that changed their length or order; S tokens, where they have T now.

    Attributes:
        ids: ``[B, S]`` int64 token ids.
        ordinary: ``[B, S]`` bool, neither special nor padding.
        origin: ``[B, T]`` int64, the place here that each token came from; -1 for an inserted
            token and for padding.

    Examples:
        The row 1 7 8 2 after its second token was deleted:

        >>> import torch
        >>> from aang_core import RowsBefore
        >>> ids = torch.tensor([[1, 7, 8, 2]])
        >>> before = RowsBefore(ids, ids > 2, origin=torch.tensor([[0, 2, 3]]))
        >>> before.ids.gather(1, before.origin)
        tensor([[1, 8, 2]])
    """

    ids: Tensor
    ordinary: Tensor
    origin: Tensor


View = Literal["corrupted", "clean"]
"""How a row is shown to the encoder: corrupted, drawn anew for each view, or unchanged."""


@dataclass(frozen=True)
class CorruptedRows:
    """Rows after the transform stage; B rows, T tokens.

    Everything ``[B, T]`` is about the tokens that the encoder reads. If the transform moved,
    deleted or inserted tokens, ``original`` and ``ordinary`` follow them.

    Attributes:
        original: ``[B, T]`` int64, what each token was before the transform; an inserted token is
            what it is.
        corrupted: ``[B, T]`` int64 token ids after the transform.
        selected: ``[B, T]`` bool, the transform's prediction targets.
        ordinary: ``[B, T]`` bool, neither special nor padding, nor inserted.
        real: ``[B, T]`` bool, not padding.
        labels: ``[B]`` int64 class ids, or None if the data has no labels. With an end task of
            another kind, ``[B, C]`` zeros and ones, or ``[B]`` numbers.
        statistics: document frequencies of the data source.
        sees: ``[B, T, T]`` bool, the representation: entry ``[b, i, j]`` says whether token i may
            attend to token j.
        vocabulary: the tokenizer's tokens.
        views: number of views of each row, V. All rows in their first view come first, then all in
            their second: view v of row i is number v · B/V + i.
        before: the rows before the transform, if it changed their length or order; else None.
        token_labels: ``[B, T]`` int64, the class id of each token's tag, -100 where it has none;
            None if the data does not label its tokens.

    Examples:
        >>> import torch
        >>> from aang_core import CorruptedRows, DocumentStatistics, Vocabulary
        >>> ids, ordinary = torch.tensor([[1, 5, 2]]), torch.tensor([[False, True, False]])
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: [""] * 6)
        >>> rows = CorruptedRows(
        ...     original=ids,
        ...     corrupted=ids.masked_fill(ordinary, words.mask_id),
        ...     selected=ordinary,
        ...     ordinary=ordinary,
        ...     real=torch.ones(1, 3, dtype=torch.bool),
        ...     labels=None,
        ...     statistics=DocumentStatistics(1, torch.ones(6, dtype=torch.int64)),
        ...     sees=torch.ones(1, 3, 3, dtype=torch.bool),
        ...     vocabulary=words,
        ... )
        >>> rows.original[rows.selected], rows.corrupted[rows.selected]
        (tensor([5]), tensor([3]))
    """

    original: Tensor
    corrupted: Tensor
    selected: Tensor
    ordinary: Tensor
    real: Tensor
    labels: Tensor | None
    statistics: DocumentStatistics
    sees: Tensor
    vocabulary: Vocabulary
    views: int = 1
    before: RowsBefore | None = None
    token_labels: Tensor | None = None

    @property
    def origin(self) -> Tensor:
        """The place before the transform that each token came from, int64 ``[B, T]``.

        It is -1 for an inserted token and for padding.
        """
        if self.before is not None:
            return self.before.origin
        place = torch.arange(self.real.shape[1], device=self.real.device)
        return place.expand_as(self.real).masked_fill(~self.real, -1)


class HeadBuilder(Protocol):
    """Makes heads that fit the shared encoder; every call returns a new module.

    Its parameters are new too, but for those of the decoder (:meth:`language_model`) and those of
    the end task's head (:meth:`end_task`), which every call shares.

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


class Output(Protocol):
    """An output primitive, made by calling its registered target with the user's options.

    Two attributes are optional:

    - ``views``, a sequence of :data:`View`: how often, and how, each row is shown to the encoder.
      ``("corrupted", "corrupted")`` asks for two draws of the corruption (and of dropout),
      ``("clean", "corrupted")`` for the row unchanged and corrupted. The default is one view,
      ``("corrupted",)``. The views share the rows of a step's budget.
    - ``couples_rows``, a bool: whether a row's loss depends on other rows. Such rows are never
      split into several batches or over several processes. The default is False.

    Examples:
        >>> from aang_core import Output, RowLosses
        >>> class WasSelected:
        ...     def head(self, heads):
        ...         return heads.token_regression()
        ...     def targets(self, rows):
        ...         return {"selected": rows.selected.float(), "ordinary": rows.ordinary}
        ...     def losses(self, head, hidden, targets):
        ...         ordinary = targets["ordinary"]
        ...         errors = (head(hidden) - targets["selected"]).square()
        ...         return RowLosses((errors * ordinary).sum(dim=1), ordinary.sum(dim=1))
        >>> output: Output = WasSelected()
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        """A new head for one objective."""
        ...

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """The named tensors that :meth:`losses` needs; their meaning is up to the output."""
        ...

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Loss of each row, computed from its hidden states ``[B, T, H]``.

        A row without targets has a sum of zero and a count of zero, never a NaN.
        """
        ...


@runtime_checkable
class CountsHits(Protocol):
    """An output that predicts classes and can count its correct predictions.

    The method is optional: without it, no accuracy is reported for the output.

    Examples:
        >>> from aang_core import CountsHits
        >>> class Sign:
        ...     def hits(self, head, hidden, targets):
        ...         return ((head(hidden) > 0) == targets["positive"]).sum(dim=1)
        >>> isinstance(Sign(), CountsHits)
        True
    """

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """Number of targets of each row that the head predicts correctly, int64 ``[B]``.

        The targets are those that :meth:`Output.losses` counts.
        """
        ...
