"""What primitives may know of the encoder's tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

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
        ordinary: ``[V']`` int64, the ids that stand for text, so no special token. Random tokens
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
