"""Unlabelled text to train an encoder on: its beginning is checked, then it is read as needed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from aang.assembly.source_rows import hold_out_of
from aang.assembly.stream_rows import StreamRows
from aang.corpora.text_streams import RepeatedTexts
from aang.corpora.tokens import TokenRows, tokenize
from transformers import PreTrainedTokenizerBase

from aang_core.contracts import CheckedData
from aang_core.errors import DataError
from aang_core.objectives.stages import DataContext, Example, ReadReport
from aang_core.tasks.processes import ALONE, Processes
from aang_plugin_prepare.pieces import Cutter, PieceStream, digest, pieces_of

LOOKED_AT = 10_000
"""Pieces of text that are checked before training, and held in memory at a time during it."""
_MOST_UNKNOWN = 0.5
_NOTED_UNKNOWN = 0.05


@dataclass(frozen=True)
class UnlabelledText:
    """Rows to train on, and held-out rows.

    Attributes:
        rows: the rows to train on.
        held_out: the rows to evaluate on.
        looked_at: the number of pieces that were read beforehand.
        tokens: the number of tokens in these pieces.
        whole: whether these pieces are all of the text.
        unknown: the share of these tokens that the tokenizer does not know.
    """

    rows: StreamRows
    held_out: TokenRows
    looked_at: int
    tokens: int
    whole: bool
    unknown: float

    def summary(self, rows_trained: int) -> dict[str, Any]:
        """Facts about the text for ``result.json``, given how many rows were trained on."""
        mean = self.tokens / self.looked_at
        facts = {
            "pieces" if self.whole else "pieces_looked_at": self.looked_at,
            "tokens" if self.whole else "tokens_looked_at": self.tokens,
            "held_out": len(self.held_out),
            "unknown_tokens": round(self.unknown, 4),
            "rows_trained": rows_trained,
            "tokens_trained": round(rows_trained * mean),
        }
        if self.whole:
            facts["passes"] = round(rows_trained / len(self.rows), 2)
        return facts


def read_unlabelled(
    data: CheckedData,
    places: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    batch_size: int,
    seed: int,
    report: ReadReport,
    processes: Processes = ALONE,
) -> UnlabelledText:
    """Check the beginning of the text, hold some of it out, and prepare to read the rest.

    Long texts are cut into pieces of ``max_length`` tokens. A tenth of the distinct pieces at the
    beginning is held out, at most 512; pieces with the same text are never trained on.

    Args:
        data: the data primitive that reads the text.
        places: files, folders or globs.
        tokenizer: the encoder's tokenizer.
        max_length: tokens per row.
        batch_size: rows per step.
        seed: the seed of all draws.
        report: collects notes about the text.
        processes: the processes that read it, each on its own.

    Raises:
        DataError: there is less than a batch of text, or the tokenizer does not know its language.
    """

    def context(told: ReadReport) -> DataContext:
        return DataContext(train=(), domain=places, out_of_domain=places, seed=seed, report=told)

    cutter = Cutter(tokenizer, max_length)
    held = data.buffer or LOOKED_AT
    first = list(islice(pieces_of(data.examples(context(report)), cutter), held + 1))
    whole, first = len(first) <= held, first[:held]
    tokens, unknown = _count(first, tokenizer)
    share = unknown / max(1, tokens)
    named = str(places[0]) + (f" and {len(places) - 1} more" if len(places) > 1 else "")
    _check(tokens, share, named, report, (batch_size, max_length) if whole else None)
    aside = _aside(first, seed)
    left_out = frozenset(map(digest, aside))
    remaining = sum(digest(piece) not in left_out for piece in first)
    if not remaining:
        raise DataError(f"--text {places[0]}: holds the same text again and again")
    # Training reads the text again; notes about it are collected only once, above.
    texts = (
        data.stream(context(ReadReport()))
        if data.buffer is not None
        else RepeatedTexts(lambda number: data.examples(context(ReadReport())))
    )
    # Whole steps of it, so that no row is left over when the next block is read.
    size = remaining if whole else min(held, max(1, held // batch_size) * batch_size)

    def tokenized(examples: Sequence[Example]) -> TokenRows:
        return tokenize(examples, tokenizer, max_length=max_length, cache=None, source="--text")

    return UnlabelledText(
        rows=StreamRows(
            PieceStream(texts, cutter, left_out),
            size,
            max(1, size // batch_size),
            tokenized,
            "--text",
            processes,
        ),
        held_out=tokenized(aside),
        looked_at=len(first),
        tokens=tokens,
        whole=whole,
        unknown=share,
    )


def _aside(pieces: Sequence[Example], seed: int) -> list[Example]:
    """Draw the pieces to hold out, all different, with ``seed``."""
    different = list({digest(piece): piece for piece in pieces}.values())
    return [different[i] for i in hold_out_of(len(different), seed)[0].tolist()]


def _count(pieces: Sequence[Example], tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """The number of tokens, without special ones, and how many of them are unknown.

    Unknown tokens are the unknown token and, for tokenizers that fall back to bytes, tokens that
    are only a part of a character.
    """
    counts: Counter[int] = Counter()
    for first in range(0, len(pieces), 1000):
        texts = [piece.text for piece in pieces[first : first + 1000]]
        for ids in tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]:
            counts.update(ids)
    unknown = sum(
        count
        for token, count in counts.items()
        if token == tokenizer.unk_token_id or "\ufffd" in str(tokenizer.decode([token]))
    )
    return counts.total(), unknown


def _check(
    tokens: int, unknown: float, named: str, report: ReadReport, least: tuple[int, int] | None
) -> None:
    """Refuse text in another language, or less than a batch of text.

    Args:
        tokens: the number of tokens.
        unknown: the share of them that the tokenizer does not know.
        named: what messages call the text.
        report: collects notes.
        least: rows of a batch and their tokens, if these tokens are all of the text.
    """
    if unknown > _MOST_UNKNOWN:
        raise DataError(
            f"--text {named}: the tokenizer of this encoder does not know the language: "
            f"{unknown:.0%} of {tokens:,} tokens are unknown to it. Take an encoder for that "
            "language, or one for many, such as xlm-roberta-base"
        )
    if unknown > _NOTED_UNKNOWN:
        report.note(f"{unknown:.0%} of the tokens in --text are unknown to the tokenizer")
    if least is not None and tokens < least[0] * least[1]:
        raise DataError(
            f"--text {named}: holds {tokens:,} tokens, which is less than a batch of "
            f"{least[0]} rows of {least[1]}; give more text, or a smaller --batch-size"
        )
