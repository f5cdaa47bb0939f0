"""The stages that work on rows of tokens: transform and representation.

In section 3 of AANG, stage 2 is how an input is corrupted, and stage 3 which tokens a token may
attend to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from aang_core.tasks.task import to_device

SELECTION_RATE = 0.15
"""Share of the ordinary tokens that become prediction targets (BERT, section 3.1)."""

_SENTENCE_ENDS = ".!?…。！？"
_ENDS_WITHOUT_SPACE = "。！？"
_CLOSING = "\"'”’»)]}」』）】》〉〕］｝"


def _never(text: str) -> bool:
    return False


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer's tokens.

    Attributes:
        size: number of token ids, V.
        mask_id: id of the mask token.
        ordinary: ``[V']`` int64, the ids that stand for text, so not special tokens. Random tokens
            are drawn from these only: RoBERTa and models like it compute positions from the ids,
            and a padding id in the middle of a row would shift them.
        decode: makes :attr:`texts`; called the first time they are read.
        template: the ids of the special tokens that the tokenizer puts around a text and between
            two, and of padding; None if any special token may be one. Other special tokens occur
            within a text, such as the unknown token.
        unspaced: whether a text begins with a letter that begins a word without a space before it,
            as in Chinese.

    Examples:
        >>> import torch
        >>> from aang_core import Vocabulary
        >>> texts = ["", "", "", "", " Paris", "ing"]
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: texts)
        >>> [words.texts[token] for token in words.ordinary.tolist()]
        [' Paris', 'ing']
    """

    size: int
    mask_id: int
    ordinary: Tensor
    decode: Callable[[], Sequence[str]]
    template: frozenset[int] | None = None
    unspaced: Callable[[str], bool] = _never

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of each of the V ids after other text: ``" Word"``, ``"ing"``, ``","``.

        A leading space marks a token that begins a word. Capitals are kept if the tokenizer keeps
        them. A special token has ``""``, and a token that is part of a character has U+FFFD.
        Decoding 50,000 tokens takes about a second, once.
        """
        return self.decode()

    def parts_texts(self, ids: Tensor, ordinary: Tensor) -> Tensor:
        """Which tokens come before, between or after texts, ``[B, T]`` bool.

        All others belong to a text, special ones within it included, such as the unknown token.

        Args:
            ids: ``[B, T]`` int64.
            ordinary: ``[B, T]`` bool.

        Examples:
            >>> import torch
            >>> from aang_core import Vocabulary
            >>> texts = ["", "", "", "", " Paris", "ing"]
            >>> ordinary = torch.tensor([4, 5])
            >>> words = Vocabulary(6, 3, ordinary, lambda: texts, template=frozenset({0, 1}))
            >>> unknown = 2
            >>> ids = torch.tensor([[1, 4, unknown, 5, 1, 0]])
            >>> words.parts_texts(ids, ids > 3)
            tensor([[ True, False, False, False,  True,  True]])
        """
        if self.template is None:
            return ~ordinary
        return ~ordinary & torch.isin(ids, torch.tensor(sorted(self.template), device=ids.device))

    @cached_property
    def _word_borders(self) -> tuple[Tensor, Tensor]:
        """Whether each text begins a word, and whether it ends with a space: ``[V]`` bool both."""
        begins = [text[:1].isspace() or self.unspaced(text) for text in self.texts]
        return torch.tensor(begins), torch.tensor([text[-1:].isspace() for text in self.texts])

    @cached_property
    def _ends_sentence(self) -> tuple[Tensor, Tensor]:
        """Whether a sentence may end with each text, and without a space: ``[V]`` bool both."""
        last = [text.rstrip().rstrip(_CLOSING)[-1:] for text in self.texts]
        ends = torch.tensor([bool(mark) and mark in _SENTENCE_ENDS for mark in last])
        return ends, torch.tensor([bool(mark) and mark in _ENDS_WITHOUT_SPACE for mark in last])

    @cached_property
    def _closes(self) -> Tensor:
        """Whether each text is only quotes or brackets that close: ``[V]`` bool."""
        return torch.tensor([bool(text) and not text.strip(_CLOSING) for text in self.texts])

    @cached_property
    def _continues_end(self) -> Tensor:
        """Whether each text is only marks that end a sentence or close there: ``[V]`` bool."""
        marks = _SENTENCE_ENDS + _CLOSING
        return torch.tensor([bool(text) and not text.strip(marks) for text in self.texts])


def word_starts(ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which ordinary tokens begin a word, ``[B, T]`` bool; the others continue one.

    A word begins after a space, after a special token, or at the start, and with a letter of a
    script without spaces between words. Punctuation belongs to the word that it follows without a
    space; BERT's tokenizer makes a word of most punctuation marks.

    Args:
        ids: ``[B, T]`` int64.
        ordinary: ``[B, T]`` bool.
        vocabulary: the tokenizer's tokens.

    Examples:
        >>> import torch
        >>> from aang_core import Vocabulary, word_starts
        >>> texts = ["", "", "", "", " Paris", "ing"]
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: texts)
        >>> ids = torch.tensor([[1, 4, 5, 4, 2]])
        >>> word_starts(ids, ids > 3, words)
        tensor([[False,  True, False,  True, False]])
    """
    begins, ends = (table.to(ids.device)[ids] for table in vocabulary._word_borders)
    parted = (ends | ~ordinary).roll(1, 1)
    parted[:, :1] = True
    return ordinary & (begins | parted)


def sentence_starts(ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which tokens of texts begin a sentence, ``[B, T]`` bool; the others continue one.

    A sentence begins where a text does, and with the word that follows a full stop, a question mark
    or an exclamation mark, and the quotes and brackets that close there. It is that simple: "e.g.
    this" has two sentences. After "。", "！" and "？" no space is needed. A special token within a
    text, such as the unknown token, counts as a word.

    Args:
        ids: ``[B, T]`` int64.
        ordinary: ``[B, T]`` bool.
        vocabulary: the tokenizer's tokens.

    Examples:
        >>> import torch
        >>> from aang_core import Vocabulary, sentence_starts
        >>> texts = ["", "", "", "", " Paris", "."]
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: texts)
        >>> ids = torch.tensor([[1, 4, 5, 4, 4, 2]])
        >>> sentence_starts(ids, ids > 3, words)
        tensor([[False,  True, False,  True, False, False]])
    """
    parts = vocabulary.parts_texts(ids, ordinary)
    starts = word_starts(ids, ordinary, vocabulary) | ~(ordinary | parts)
    ends, ends_without = (
        table.to(ids.device)[ids] & ordinary for table in vocabulary._ends_sentence
    )
    # A quote that begins a word opens what follows.
    closes = vocabulary._closes.to(ids.device)[ids] & ordinary & ~starts
    place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    last = place.masked_fill(closes, 0).cummax(dim=1).values
    ended = ends.gather(1, last).roll(1, 1)
    ended_without = ends_without.gather(1, last).roll(1, 1)
    ended_without &= ~vocabulary._continues_end.to(ids.device)[ids]
    parted = parts.roll(1, 1)
    ended[:, :1], ended_without[:, :1], parted[:, :1] = False, False, True
    return ~parts & (parted | (ended & starts) | ended_without)


class Corruption(NamedTuple):
    """What a transform returns.

    A transform that leaves every token in its place returns ``ids`` and ``selected``. One that
    deletes, inserts or moves tokens says with ``real`` which are left, and with ``origin`` where
    each came from; rows may then have a different number of tokens, T'. Padding may be anywhere:
    AANG moves the tokens that are left to the beginning of their row. It cuts a row that has become
    too long for the encoder. Special tokens have to stay, in their order, the first one at the
    beginning.

    Attributes:
        ids: ``[B, T']`` int64, the corrupted input; T' = T without ``origin``.
        selected: ``[B, T']`` bool, the prediction targets; a subset of the ordinary tokens that are
            left, and none that was inserted.
        real: ``[B, T']`` bool, the tokens that are left; None for all. What was padding stays
            padding, whether it is marked here or not.
        origin: ``[B, T']`` int64, the place in the given row that each token came from; -1 for one
            that was inserted. None if no token has moved.

    Examples:
        >>> import torch
        >>> from aang_core import Corruption
        >>> ids, selected = torch.tensor([[1, 7, 2]]), torch.tensor([[False, True, False]])
        >>> Corruption(ids.masked_fill(selected, 0), selected).ids
        tensor([[1, 0, 2]])

        The row 1 7 8 2 without its third token, and with its middle tokens exchanged:

        >>> ids = torch.tensor([[1, 7, 8, 2]])
        >>> nothing = torch.zeros_like(ids, dtype=torch.bool)
        >>> left = torch.tensor([[True, True, False, True]])
        >>> deleted = Corruption(ids, nothing, real=left)
        >>> order = torch.tensor([[0, 2, 1, 3]])
        >>> exchanged = Corruption(ids.gather(1, order), nothing, origin=order)
    """

    ids: Tensor
    selected: Tensor
    real: Tensor | None = None
    origin: Tensor | None = None


class Transform(Protocol):
    """A transform primitive, made by calling its registered target with the user's options.

    Examples:
        >>> from aang_core import Corruption, Transform, select_tokens
        >>> class Mask:
        ...     def __call__(self, ids, ordinary, vocabulary, generator):
        ...         selected = select_tokens(ordinary, generator)
        ...         return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)
        >>> transform: Transform = Mask()
    """

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Corrupt a batch.

        Args:
            ids: ``[B, T]`` int64, never changed in place.
            ordinary: ``[B, T]`` bool, True at tokens that are neither special nor padding.
            vocabulary: the tokenizer's tokens.
            generator: the only source of randomness.
        """
        ...


@dataclass(frozen=True)
class EmbeddedRows:
    """Rows as the encoder embeds them, after the transform; B rows, T tokens, E embedding size.

    Attributes:
        embeddings: ``[B, T, E]``, the word embeddings, on the device that trains.
        noisy: ``[B, T]`` bool, the tokens that take noise: the ordinary ones, except in rows that
            are shown clean. Noise on others is dropped.
        gradient: the gradient ``[B, T, E]`` of the sum of the objective's losses with respect to
            the noise of these tokens, given the noise ``[B, T, E]`` to take it at. Each call is a
            forward and a backward pass.

    Examples:
        >>> import torch
        >>> from aang_core import EmbeddedRows
        >>> noisy = torch.tensor([[False, True, True]])
        >>> rows = EmbeddedRows(torch.ones(1, 3, 2), noisy, gradient=lambda noise: noise)
        >>> rows.normal(torch.Generator().manual_seed(0)).shape
        torch.Size([1, 3, 2])
    """

    embeddings: Tensor
    noisy: Tensor
    gradient: Callable[[Tensor], Tensor]

    def normal(self, generator: torch.Generator) -> Tensor:
        """Standard normal numbers ``[B, T, E]`` for the noisy tokens, zeros for the others."""
        drawn = torch.randn(self.embeddings.shape, generator=generator)
        return to_device(drawn, self.embeddings.device) * self.noisy.unsqueeze(2)


@runtime_checkable
class NoisesEmbeddings(Protocol):
    """A transform that also adds noise to the embeddings of the tokens that it returns.

    It provides the trait ``noises-embeddings``.

    Examples:
        >>> from aang_core import Corruption, NoisesEmbeddings, select_tokens
        >>> class Noise:
        ...     def __call__(self, ids, ordinary, vocabulary, generator):
        ...         return Corruption(ids, select_tokens(ordinary, generator))
        ...     def noise(self, rows, generator):
        ...         return 0.1 * rows.normal(generator)
        >>> isinstance(Noise(), NoisesEmbeddings)
        True
    """

    def noise(self, rows: EmbeddedRows, generator: torch.Generator) -> Tensor:
        """The noise to add to the embeddings, ``[B, T, E]``.

        Args:
            rows: the rows, and the gradient that adversarial noise follows. A step's rows may come
                in several batches, so the noise of a row must depend on that row alone.
            generator: the only source of randomness; it is on the CPU.
        """
        ...


def select_tokens(
    ordinary: Tensor, generator: torch.Generator, rate: float = SELECTION_RATE
) -> Tensor:
    """Select each ordinary token independently with probability ``rate``.

    Args:
        ordinary: ``[B, T]`` bool, True at tokens that are neither special nor padding.
        generator: source of the draws, on the device of ``ordinary``.
        rate: the probability.

    Returns:
        ``[B, T]`` bool.

    Examples:
        >>> import torch
        >>> from aang_core import select_tokens
        >>> ordinary = torch.tensor([[False, True, True, False]])
        >>> select_tokens(ordinary, torch.Generator(), rate=1.0)
        tensor([[False,  True,  True, False]])
    """
    drawn = torch.rand(ordinary.shape, generator=generator, device=ordinary.device)
    return ordinary & (drawn < rate)


def random_tokens(shape: torch.Size, vocabulary: Vocabulary, generator: torch.Generator) -> Tensor:
    """Token ids drawn uniformly from the vocabulary's ordinary tokens, int64.

    Args:
        shape: of the result.
        vocabulary: the tokenizer's tokens.
        generator: source of the draws.

    Examples:
        >>> import torch
        >>> from aang_core import Vocabulary, random_tokens
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: [""] * 6)
        >>> drawn = random_tokens(torch.Size([2, 3]), words, torch.Generator().manual_seed(0))
        >>> drawn.shape, int(drawn.min()) >= 4
        (torch.Size([2, 3]), True)
    """
    drawn = torch.randint(
        vocabulary.ordinary.numel(), shape, generator=generator, device=vocabulary.ordinary.device
    )
    return vocabulary.ordinary[drawn]


class NoOp:
    """The transform that leaves the input as it is (AANG, Table 1).

    It still selects 15% of the ordinary tokens as prediction targets.
    """

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: torch.Generator
    ) -> Corruption:
        """Return ``ids`` ``[B, T]`` themselves, and the tokens that are to be predicted."""
        return Corruption(ids, select_tokens(ordinary, generator))


class Representation(Protocol):
    """A representation primitive, made by calling its target with the user's options.

    One that has to know the tokens implements :class:`TextRepresentation` instead.

    Examples:
        >>> import torch
        >>> from aang_core import Representation
        >>> class LeftToRight:
        ...     def __call__(self, real, generator):
        ...         rows, tokens = real.shape
        ...         return real.unsqueeze(1).expand(rows, tokens, tokens).tril()
        >>> representation: Representation = LeftToRight()
        >>> representation(torch.tensor([[True, True, False]]), torch.Generator()).int()
        tensor([[[1, 0, 0],
                 [1, 1, 0],
                 [1, 1, 0]]], dtype=torch.int32)
    """

    def __call__(self, real: Tensor, generator: torch.Generator) -> Tensor:
        """Choose which tokens each token may attend to.

        Args:
            real: ``[B, T]`` bool, True at every token that is not padding, special ones included.
            generator: the only source of randomness.

        Returns:
            ``[B, T, T]`` bool; entry ``[b, i, j]`` says whether token i sees token j. No token sees
            padding, and every real token sees at least one token.
        """
        ...


@dataclass(frozen=True)
class ShownRows:
    """Rows as the encoder reads them, after the transform; B rows, T tokens.

    Attributes:
        ids: ``[B, T]`` int64, never changed in place.
        real: ``[B, T]`` bool, not padding.
        ordinary: ``[B, T]`` bool, neither special nor padding. Special tokens separate the two
            texts of a row that has two.
        vocabulary: the tokenizer's tokens.

    Examples:
        >>> import torch
        >>> from aang_core import ShownRows, sentence_starts
        >>> from aang_testing import VOCABULARY
        >>> ids = torch.tensor([[1, 4, 5, 2, 6, 2]])
        >>> rows = ShownRows(ids, real=ids > 0, ordinary=ids > 3, vocabulary=VOCABULARY)
        >>> sentence_starts(rows.ids, rows.ordinary, rows.vocabulary).nonzero()[:, 1]
        tensor([1, 4])
    """

    ids: Tensor
    real: Tensor
    ordinary: Tensor
    vocabulary: Vocabulary


@runtime_checkable
class TextRepresentation(Protocol):
    """A representation that depends on the tokens of a row, such as its sentences.

    Examples:
        >>> import torch
        >>> from aang_core import ShownRows, TextRepresentation, Vocabulary
        >>> class OwnText:
        ...     def of_text(self, rows, generator):
        ...         text = (~rows.ordinary).cumsum(dim=1)
        ...         return (text.unsqueeze(1) == text.unsqueeze(2)) & rows.real.unsqueeze(1)
        >>> isinstance(OwnText(), TextRepresentation)
        True
        >>> words = Vocabulary(6, mask_id=3, ordinary=torch.tensor([4, 5]), decode=lambda: [""] * 6)
        >>> ids = torch.tensor([[1, 4, 2, 5]])
        >>> rows = ShownRows(ids, real=ids > 0, ordinary=ids > 3, vocabulary=words)
        >>> OwnText().of_text(rows, torch.Generator()).int()
        tensor([[[1, 1, 0, 0],
                 [1, 1, 0, 0],
                 [0, 0, 1, 1],
                 [0, 0, 1, 1]]], dtype=torch.int32)
    """

    def of_text(self, rows: ShownRows, generator: torch.Generator) -> Tensor:
        """Choose which tokens each token may attend to, as :class:`Representation` does.

        Args:
            rows: the rows, with their tokens.
            generator: the only source of randomness.

        Returns:
            ``[B, T, T]`` bool, as :class:`Representation` returns it.
        """
        ...


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


@dataclass(frozen=True)
class CorruptedRows:
    """Rows after the transform stage; B rows, T tokens.

    Everything ``[B, T]`` is about the tokens that the encoder reads. If the transform moved,
    deleted or inserted tokens, ``original`` and ``ordinary`` follow them.

    Attributes:
        original: ``[B, T]`` int64, what each token was before the transform; an inserted token
            counts as itself.
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
