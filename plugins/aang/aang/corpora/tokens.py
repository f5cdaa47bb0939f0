"""Texts as token ids: tokenised once, stored compactly, padded one batch at a time."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from aang.corpora.token_cache import Texts, collect, encode, special_ids
from aang.task_types.task_type import NO_LABEL, EncodedLabels, Offsets, TaskType
from aang.task_types.words import is_unspaced, letter_runs
from aang_core.errors import ConfigError, DataError, ModelError
from aang_core.objectives.stages.data import Example, ReadReport
from aang_core.objectives.stages.output import DocumentStatistics
from aang_core.objectives.stages.vocabulary import Vocabulary


@dataclass(frozen=True)
class PaddedRows:
    """Rows of one batch, padded on the right to the longest of them; B rows, T tokens.

    Attributes:
        ids: ``[B, T]`` int64 token ids.
        real: ``[B, T]`` bool, not padding.
        ordinary: ``[B, T]`` bool, neither special nor padding.
        token_types: ``[B, T]`` int64, or None if the tokenizer makes none.
        labels: ``[B, ...]``, the label of each row: int64 class ids ``[B]`` for a single-label
            task; None if the source has no labels, or labels its tokens.
        pad_id: token id of padding.
        pad_type: token type of padding.
        token_labels: ``[B, T]`` int64, the class id of each token's tag, -100 where it has none;
            None if the source does not label its tokens.
    """

    ids: Tensor
    real: Tensor
    ordinary: Tensor
    token_types: Tensor | None
    labels: Tensor | None
    pad_id: int
    pad_type: int
    token_labels: Tensor | None = None


class TokenRows:
    """The N tokenised texts of one source, concatenated without padding.

    Attributes:
        lengths: ``[N]`` int64, number of tokens of each row, including special ones.
        labels: ``[N, ...]``, the label of each row, or None; see :class:`PaddedRows`.
        truncated: number of texts that were longer than allowed and were cut.
        empty: indices of the texts without any ordinary token.
    """

    def __init__(
        self,
        encoded: pa.Table,
        *,
        labels: EncodedLabels,
        pad_id: int,
        pad_type: int,
        vocabulary_size: int,
    ) -> None:
        ids = encoded.column("ids").combine_chunks()
        self.lengths = torch.from_numpy(ids.value_lengths().to_numpy().astype(np.int64))
        self.labels = labels.rows
        self._token_labels = labels.tokens
        self.truncated = int(np.count_nonzero(encoded.column("cut").to_numpy()))
        self._starts = self.lengths.cumsum(0) - self.lengths
        self._ids = _flat(ids, np.int32)
        self._ordinary = _flat(encoded.column("ordinary").combine_chunks(), np.bool_)
        ends = torch.cat([torch.zeros(1, dtype=torch.int64), self._ordinary.cumsum(0)])
        ordinary = ends[self._starts + self.lengths] - ends[self._starts]
        self.empty: list[int] = (ordinary == 0).nonzero().flatten().tolist()
        types = _flat(encoded.column("types").combine_chunks(), np.int8)
        self._types = types if len(types) == len(self._ids) else None
        self._pad_id = pad_id
        self._pad_type = pad_type
        self._vocabulary_size = vocabulary_size

    def __len__(self) -> int:
        """Number of rows, N."""
        return len(self.lengths)

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all rows in their order: the same for the same tokens and labels."""
        content = hashlib.sha256()
        parts = (self.lengths, self._ids, self._ordinary, self._types, self.labels)
        for part in (*parts, self._token_labels):
            if part is None:
                content.update(b"none")
                continue
            values = part.contiguous().numpy()
            content.update(f"{values.dtype}{values.shape}".encode())
            content.update(values.data)
        return content.hexdigest()[:32]

    def rows(self, indices: Tensor) -> PaddedRows:
        """The rows with the given indices, int64 ``[B]``, in that order."""
        lengths = self.lengths[indices]
        positions = torch.arange(int(lengths.max()) if len(lengths) else 0)
        real = positions < lengths[:, None]
        # Past the end of a row the index belongs to another row or to none; 0 always exists.
        source = torch.where(real, self._starts[indices][:, None] + positions, 0)
        types, tags = None, None
        if self._types is not None:
            types = _gather(self._types, source).long().masked_fill(~real, self._pad_type)
        if self._token_labels is not None:
            tags = _gather(self._token_labels, source).masked_fill(~real, NO_LABEL)
        return PaddedRows(
            ids=_gather(self._ids, source).long().masked_fill(~real, self._pad_id),
            real=real,
            ordinary=_gather(self._ordinary, source) & real,
            token_types=types,
            labels=None if self.labels is None else self.labels[indices],
            pad_id=self._pad_id,
            pad_type=self._pad_type,
            token_labels=tags,
        )

    def truth(self, part: Tensor | None = None) -> Tensor:
        """The labels of all rows, ``[N, ...]``, or of all their tokens, ``[N, T]``.

        Args:
            part: indices of the rows, int64 ``[N]``; None for all of them.

        Raises:
            ValueError: the rows have no labels.
        """
        if self.labels is not None:
            return self.labels if part is None else self.labels[part]
        tags = self.rows(torch.arange(len(self)) if part is None else part).token_labels
        if tags is None:
            raise ValueError("these rows have no labels")
        return tags

    def document_statistics(self) -> DocumentStatistics:
        """Number of rows that contain each token id, over ordinary tokens; computed once."""
        return self._statistics

    @cached_property
    def _statistics(self) -> DocumentStatistics:
        frequency = torch.zeros(self._vocabulary_size, dtype=torch.int64)
        row_of = torch.repeat_interleave(torch.arange(len(self)), self.lengths)
        # In pieces of whole rows, so that sorting needs little memory whatever N is.
        for first in range(0, len(self), STATISTICS_ROWS):
            last = min(first + STATISTICS_ROWS, len(self)) - 1
            piece = slice(int(self._starts[first]), int(self._starts[last] + self.lengths[last]))
            ordinary = self._ordinary[piece]
            ids = self._ids[piece][ordinary].long()
            pairs = torch.unique(row_of[piece][ordinary] * self._vocabulary_size + ids)
            frequency += torch.bincount(
                pairs % self._vocabulary_size, minlength=self._vocabulary_size
            )
        return DocumentStatistics(len(self), frequency)


STATISTICS_ROWS = 8192
"""Rows whose tokens are counted at a time."""


def tokenize(
    examples: Iterable[Example],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    cache: Path | None,
    task_type: TaskType | None = None,
    report: ReadReport | None = None,
    source: str = "data",
) -> TokenRows:
    """Tokenise a source, or load its ids from the cache if it was tokenised before.

    Args:
        examples: read one by one; only texts and labels are kept, and texts only during the call.
        tokenizer: the encoder's tokenizer.
        max_length: longest row, in tokens including special ones; of a pair, the longer text is cut
            first.
        cache: the cache folder, such as :func:`.cache.cache_folder` returns; None for no cache.
        task_type: turns labels into tensors; None leaves the rows without labels.
        report: where to count the texts that were cut.
        source: what messages call it.

    Raises:
        DataError: there are no examples, or one has no label or one that the task does not know.
        ModelError: the tokenizer has no padding token; or it cannot tell where in the text its
            tokens are, and the task labels tokens.
        ConfigError: ``max_length`` leaves no room for text, or the cache cannot be written.
    """
    report = ReadReport() if report is None else report
    if tokenizer.pad_token_id is None:
        raise ModelError(
            f"{_name(tokenizer)}: the tokenizer has no padding token, so rows of different "
            "length cannot share a batch. Use an encoder such as BERT or RoBERTa."
        )
    texts = collect(examples, report)
    if not texts.labels:
        raise DataError(f"{source}: there is no text at all. Check what it was asked to read.")
    paired = texts.columns["pair"].null_count < len(texts.labels)
    _require_room(tokenizer, max_length, paired=paired)
    encoded = encode(texts, tokenizer, max_length, cache)
    labels = EncodedLabels()
    if task_type is not None:
        offsets = partial(_offsets, texts, tokenizer, max_length)
        labels = task_type.encode(texts.labels, offsets, source)
    rows = TokenRows(
        encoded,
        labels=labels,
        pad_id=tokenizer.pad_token_id,
        pad_type=tokenizer.pad_token_type_id,
        vocabulary_size=_size(tokenizer),
    )
    if rows.truncated:
        first = int(np.argmax(encoded.column("cut").to_numpy()))
        event = f"text longer than {max_length} tokens, cut; {source} has {len(rows)} texts"
        report.add(event, f"text {first + 1}")
        report.counts[event] += rows.truncated - 1
    for index in rows.empty:
        report.add(f"text that has no tokens; {source}", f"text {index + 1}")
    return rows


def vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """The tokenizer's tokens, as primitives see them.

    Raises:
        ModelError: the tokenizer has no mask token.
    """
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"{_name(tokenizer)}: the tokenizer has no mask token, which masking needs. "
            "Use an encoder that was pre-trained with masking, such as BERT or RoBERTa, or add "
            "the token with tokenizer.add_special_tokens({'mask_token': '<mask>'}) and save it."
        )
    ordinary = sorted(set(tokenizer.get_vocab().values()) - special_ids(tokenizer))
    return Vocabulary(
        _size(tokenizer),
        tokenizer.mask_token_id,
        torch.tensor(ordinary),
        decode=partial(_texts, tokenizer, ordinary),
        template=_template(tokenizer),
        unspaced=_begins_unspaced,
    )


def _template(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the special tokens that the tokenizer puts around texts, and of padding."""
    encoded = tokenizer("a", "a", return_special_tokens_mask=True, verbose=False)
    marked = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
    # Not every tokenizer written in Python marks what it adds.
    named = (
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
    )
    return frozenset(token for token, mark in marked if mark) | {
        token for token in named if token is not None
    }


def _begins_unspaced(text: str) -> bool:
    """Whether a text begins with a letter that is a word, and not with a mark on the one before."""
    return bool(text) and is_unspaced(text[0]) and letter_runs("北" + text)[0] == "北"


def _texts(tokenizer: PreTrainedTokenizerBase, ordinary: Sequence[int]) -> list[str]:
    """The text of each id after other text; empty for ids that are not ordinary.

    Alone, a token loses its leading space, so each is decoded after a piece of a word.
    """
    first = islice(ordinary, _LOOKED_AT)
    letters = (token for token in first if str(tokenizer.decode([token])).isalpha())
    before = next(letters, ordinary[0])
    pairs = [[before, token] for token in ordinary]
    if tokenizer.is_fast:
        # transformers decodes one after the other: minutes for a million tokens.
        decoded = tokenizer.backend_tokenizer.decode_batch(pairs, skip_special_tokens=False)
    else:
        decoded = tokenizer.batch_decode(pairs, clean_up_tokenization_spaces=False)
    alone = str(tokenizer.decode([before]))
    texts = [""] * _size(tokenizer)
    for token, both in zip(ordinary, decoded, strict=True):
        texts[token] = both.removeprefix(alone)
    return texts


_LOOKED_AT = 10_000
"""Tokens among which one of letters is looked for; where there are such, many are."""


def _size(tokenizer: PreTrainedTokenizerBase) -> int:
    # A vocabulary with gaps has ids beyond its length.
    return max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=0))


def _require_room(tokenizer: PreTrainedTokenizerBase, max_length: int, *, paired: bool) -> None:
    special = tokenizer.num_special_tokens_to_add(pair=paired)
    # Below this length, tokenizers silently do not truncate at all.
    if max_length < special + (2 if paired else 1):
        raise ConfigError(
            f"--max-length {max_length} leaves no room for text: the tokenizer adds {special} "
            "special tokens to each row. Give at least 16, better 128."
        )


def _offsets(texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Offsets:
    return token_offsets(texts.columns["text"].to_pylist(), tokenizer, max_length)


def token_offsets(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Offsets:
    """Where the tokens of each text begin and end in it; (0, 0) for special tokens.

    Raises:
        ModelError: the tokenizer does not know.
    """
    if not tokenizer.is_fast:
        raise ModelError(
            f"{_name(tokenizer)}: the tokenizer cannot say where in a text its tokens are, which "
            "labels of tokens need. Use a model with a fast tokenizer, such as BERT or RoBERTa."
        )
    encoded = tokenizer(
        list(texts),
        truncation="longest_first",
        max_length=max_length,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    found: Offsets = encoded["offset_mapping"]
    return found


def _gather(values: Tensor, source: Tensor) -> Tensor:
    """``values[source]``, but on one thread.

    Indexing starts a second thread for a few thousand numbers already. On busy cores, waiting for
    that thread takes a hundred times longer than the work.
    """
    return values.index_select(0, source.flatten()).view_as(source)


def _flat(column: pa.ListArray, kind: type[np.generic]) -> Tensor:
    """All values of a list column, concatenated; a copy, since torch wants to own its memory."""
    return torch.from_numpy(column.flatten().to_numpy(zero_copy_only=False).astype(kind, copy=True))


def _name(tokenizer: PreTrainedTokenizerBase) -> str:
    return tokenizer.name_or_path or type(tokenizer).__name__
