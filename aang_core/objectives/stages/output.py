"""The output stage: what is predicted, and its loss (AANG, section 3, stage 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from aang_core.objectives.stages.vocabulary import Vocabulary
from aang_core.tasks.task import RowLosses


@dataclass(frozen=True)
class DocumentStatistics:
    """Document frequencies of a data source, over its own texts.

    documents: number of texts, N.
    document_frequency: ``[V]`` int64, in how many of them each token id occurs.
    """

    documents: int
    document_frequency: Tensor


View = Literal["corrupted", "clean"]
"""How a row is shown: as the transform leaves it, drawn anew for each view, or as it is."""


@dataclass(frozen=True)
class CorruptedRows:
    """Rows as they leave the transform stage; B rows, T tokens.

    original, corrupted: ``[B, T]`` int64 token ids before and after the transform.
    selected: ``[B, T]`` bool, the transform's prediction targets.
    ordinary: ``[B, T]`` bool, neither special nor padding.
    real: ``[B, T]`` bool, not padding.
    labels: ``[B]`` int64 class ids, or None where the data has no labels.
    statistics: document frequencies of the data source.
    sees: ``[B, T, T]`` bool, which tokens a token may attend to, as the representation has it.
    vocabulary: the tokens that there are.
    views: how many views there are of each row, V. All rows in their first view come first, then
        all in their second: view v of row i is number v · B/V + i.
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


class HeadBuilder(Protocol):
    """Makes heads that fit the shared encoder; every call returns a new module.

    Where none of these is what you predict, make a module of your own: ``hidden_size`` is H, the
    size of the hidden states that it gets.
    """

    @property
    def hidden_size(self) -> int: ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that there are.

        An output that cannot do with them says so in :meth:`Output.head`, with a
        :class:`~aang_core.errors.ConfigError`: then nothing has been trained or written yet.
        """
        ...

    def language_model(self) -> nn.Module:
        """Hidden states ``[S, H]`` → vocabulary logits ``[S, V]``.

        Starts as a copy of the encoder's pre-trained LM head where it has one. The decoder (the
        V × H matrix) is shared, and tied to the word embeddings where the model ties it.
        """
        ...

    def classification(self) -> nn.Module:
        """Hidden states ``[B, T, H]`` → logits ``[B, C]`` over the classes of the objective's data.

        Those are the end task's, unless the data brings labels of its own.
        """
        ...

    def positions(self) -> nn.Module:
        """Positions ``[S]`` int64 → vectors ``[S, H]``, all zero to start with."""
        ...

    def token_regression(self) -> nn.Module:
        """Hidden states ``[..., H]`` → one number per token, ``[...]``."""
        ...


class Output(Protocol):
    """An output primitive, made by calling its registered target with the user's options.

    Two attributes are optional:

    - ``views``, a sequence of :data:`View`: how often, and how, each row is shown to the encoder.
      ``("corrupted", "corrupted")`` asks for two draws of the corruption (and of dropout),
      ``("clean", "corrupted")`` for the row as it is and corrupted. By default it is one view,
      ``("corrupted",)``. The rows of a step's budget are shared by the views.
    - ``couples_rows``, a bool: whether a row's loss depends on other rows. Such rows are never
      split into several batches, nor over several processes. False by default.
    """

    def head(self, heads: HeadBuilder) -> nn.Module:
        """A fresh head for one objective."""
        ...

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """Whatever :meth:`losses` needs, as named tensors; what they mean is the output's own."""
        ...

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """Loss of each row from its hidden states ``[B, T, H]``.

        A row without a target contributes a zero sum and a zero count, never a NaN.
        """
        ...


@runtime_checkable
class CountsHits(Protocol):
    """An output whose guesses are right or wrong, and that can say how many are right.

    It need not: where an output has no such method, its accuracy is not told.
    """

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """How many targets of each row the head's first guess meets, int64 ``[B]``.

        The targets are those that :meth:`Output.losses` counts.
        """
        ...
