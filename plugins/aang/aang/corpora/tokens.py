"""Texts as token ids: tokenised once, stored compactly, padded one batch at a time."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from aang.corpora.text_files import well_formed
from aang.corpora.token_cache import encode
from aang.corpora.tokenizer import name_of, token_offsets, unknown_letters, vocabulary_size
from aang.task_types.task_type import NO_LABEL, EncodedLabels, TaskType
from aang_core.errors import ConfigError, DataError, ModelError
from aang_core.objectives.stages.data import Example, ReadReport
from aang_core.objectives.stages.rows import DocumentStatistics


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
        encoded: Mapping[str, Tensor],
        labels: EncodedLabels,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        self.lengths = encoded["lengths"]
        self.labels = labels.rows
        self._token_labels = labels.tokens
        self.truncated = int(encoded["cut"].sum())
        self._starts = self.lengths.cumsum(0) - self.lengths
        self._ids, self._ordinary, types = (encoded[n] for n in ("ids", "ordinary", "types"))
        ends = torch.cat([torch.zeros(1, dtype=torch.int64), self._ordinary.cumsum(0)])
        ordinary = ends[self._starts + self.lengths] - ends[self._starts]
        self.empty: list[int] = (ordinary == 0).nonzero().flatten().tolist()
        self._types = types if len(types) == len(self._ids) else None
        self._pad_id: int = tokenizer.pad_token_id
        self._pad_type: int = tokenizer.pad_token_type_id
        self._vocabulary_size = vocabulary_size(tokenizer)

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


LOOKED_AT = 1000
"""Texts of a source whose letters are counted, to see whether the tokenizer knows the language."""
MOST_UNKNOWN = 0.05
"""A larger share of unknown letters is noted."""

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
        examples: the texts and their labels.
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
            f"{name_of(tokenizer)}: the tokenizer has no padding token, so rows of different "
            "length cannot share a batch. Use an encoder such as BERT or RoBERTa."
        )
    examples = list(examples)
    if not examples:
        raise DataError(f"{source}: there is no text at all. Check what it was asked to read.")
    texts = [
        (_clean(e.text, report), e.text_pair and _clean(e.text_pair, report)) for e in examples
    ]
    paired = any(pair is not None for _, pair in texts)
    special = tokenizer.num_special_tokens_to_add(pair=paired)
    # Below this length, tokenizers silently do not truncate at all.
    if max_length < special + (2 if paired else 1):
        raise ConfigError(
            f"--max-length {max_length} leaves no room for text: the tokenizer adds {special} "
            "special tokens to each row. Give at least 16, better 128."
        )
    encoded = encode(texts, tokenizer, max_length, cache)
    labels = EncodedLabels()
    if task_type is not None:
        # Called only if the task labels tokens.
        offsets = partial(token_offsets, [text for text, _ in texts], tokenizer, max_length)
        labels = task_type.encode([example.label for example in examples], offsets, source)
    rows = TokenRows(encoded, labels, tokenizer)
    if rows.truncated:
        first = int(encoded["cut"].int().argmax())
        event = f"text longer than {max_length} tokens, cut; {source} has {len(rows)} texts"
        if labels.tokens is not None:
            event += ", and tags of words behind the cut count nowhere"
        report.add(event, f"text {first + 1}")
        report.counts[event] += rows.truncated - 1
    for index in rows.empty:
        event = f"text without a token that the tokenizer knows; {source}"
        report.add(event, f"text {index + 1}")
    share = unknown_letters((t for pair in texts[:LOOKED_AT] for t in pair if t), tokenizer)
    if share > MOST_UNKNOWN:
        advice = "an encoder for its language, or one for many such as xlm-roberta-base, knows more"
        report.note(
            f"{share:.0%} of the letters of {source} are unknown to the tokenizer; {advice}"
        )
    return rows


def _clean(text: str, report: ReadReport) -> str:
    clean = well_formed(text)
    if clean != text:
        report.add("text with half a surrogate pair, replaced by U+FFFD", repr(clean)[:42])
    return clean


def _gather(values: Tensor, source: Tensor) -> Tensor:
    """``values[source]``, but on one thread.

    Indexing starts a second thread even for a few thousand numbers. On busy cores, waiting for that
    thread takes a hundred times longer than the work.
    """
    return values.index_select(0, source.flatten()).view_as(source)
