"""Tokenises a source once and caches the ids under a hash of everything they depend on."""

import hashlib
import json
import logging
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import tokenizers
import transformers
from transformers import PreTrainedTokenizerBase

from aang.corpora.cache import make_folder, unusable
from aang.corpora.text_files import well_formed
from aang.corpora.tokenizer_definition import tokenizer_digest
from aang.progress_bars import no_dataset_bars
from aang_core.objectives.stages.data import Example, Label, ReadReport
from aang_core.storage.checksums import digest_of

_CONTENT = 2
"""Increase when what is stored or its fingerprint changes, so that older files are not used."""

_BATCH = 1000

_log = logging.getLogger(__name__)

_SCHEMA = pa.schema(
    {
        "ids": pa.list_(pa.int32()),
        "ordinary": pa.list_(pa.bool_()),
        "types": pa.list_(pa.int8()),
        "cut": pa.bool_(),
    }
)


@dataclass
class Texts:
    """The texts of a source in Arrow's memory, without a Python object for each.

    Attributes:
        columns: ``text`` and ``pair`` (null for a single text).
        labels: the label of each example.
        digest: hash over all texts, in order.
    """

    columns: Mapping[str, pa.ChunkedArray]
    labels: list[Label | None] = field(default_factory=list)
    digest: str = ""


def collect(examples: Iterable[Example], report: ReadReport) -> Texts:
    """Store the examples in batches, and hash their texts."""
    digest = hashlib.sha256()
    labels: list[Label | None] = []
    chunks: dict[str, list[pa.Array]] = {"text": [], "pair": []}
    source = iter(examples)
    while batch := list(islice(source, _BATCH)):
        for name, values in (
            ("text", [_clean(example.text, report) for example in batch]),
            ("pair", [_clean(example.text_pair, report) for example in batch]),
        ):
            chunk = pa.array(values, pa.string())
            chunks[name].append(chunk)
            # Lengths keep "ab", "c" and "a", "bc" apart.
            digest.update(repr([value and len(value) for value in values]).encode())
            digest.update("".join(value or "" for value in values).encode())
        labels.extend(example.label for example in batch)
    columns = {name: pa.chunked_array(arrays, pa.string()) for name, arrays in chunks.items()}
    return Texts(columns, labels, digest.hexdigest())


def encode(
    texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int, cache: Path | None
) -> pa.Table:
    """Token ids of all texts, from the cache if possible, otherwise tokenised and cached.

    Args:
        texts: the texts.
        tokenizer: the encoder's tokenizer.
        max_length: longest row, in tokens.
        cache: the cache folder; None to tokenise in memory what will not be needed again.

    Returns:
        A table with the columns ``ids`` (list of int32), ``ordinary`` (list of bool), ``types``
        (list
        of int8, empty if the tokenizer makes none) and ``cut`` (bool, whether the text was longer).

    Raises:
        ConfigError: the cache folder cannot be written to.
    """
    from datasets import Dataset, Features, List, Value

    if cache is None:
        encoder = RowEncoder(tokenizer, max_length)
        batches = pa.table(dict(texts.columns)).to_batches()
        return pa.Table.from_batches(
            [pa.RecordBatch.from_pydict(encoder(b.to_pydict()), _SCHEMA) for b in batches], _SCHEMA
        )
    fingerprint = _fingerprint(texts, tokenizer, max_length)
    folder = cache / "tokens"
    stored = _stored(folder, fingerprint, len(texts.labels))
    if stored is not None:
        return stored
    make_folder(folder)
    draft = folder / f".{fingerprint}.{secrets.token_hex(4)}.arrow"
    source = Dataset.from_dict(dict(texts.columns))
    try:
        with nullcontext() if sys.stderr.isatty() else no_dataset_bars():
            # `map` writes to a temporary file beside the final one and moves it there when done.
            rows = source.map(
                RowEncoder(tokenizer, max_length),
                batched=True,
                batch_size=_BATCH,
                remove_columns=source.column_names,
                features=Features(
                    {
                        "ids": List(Value("int32")),
                        "ordinary": List(Value("bool")),
                        "types": List(Value("int8")),
                        "cut": Value("bool"),
                    }
                ),
                cache_file_name=str(draft),
                new_fingerprint=fingerprint,
                load_from_cache_file=False,
                desc="Tokenising",
            )
        draft.rename(folder / f"{fingerprint}.{_digest(draft)}.arrow")
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise unusable(folder, error) from error
    return rows.data.table


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of all tokens that do not stand for text, including those added later."""
    added = tokenizer.added_tokens_decoder.items()
    return frozenset(tokenizer.all_special_ids) | {
        number for number, token in added if token.special
    }


def _stored(folder: Path, fingerprint: str, rows: int) -> pa.Table | None:
    """The table of an earlier run; None if it is missing or damaged.

    The name of its file has the checksum of its content, so that both appear at once.
    """
    from datasets import Dataset

    for path in sorted(folder.glob(f"{fingerprint}.*.arrow")):
        # A broken cache is no reason to stop: it can be computed again.
        with suppress(pa.ArrowException, OSError):
            if path.is_file() and path.name.split(".")[1] == _digest(path):
                table = Dataset.from_file(str(path)).data.table
                if table.num_rows == rows:
                    return table
        _log.warning("%s: the cached tokens are damaged, and are made anew", path)
        with suppress(OSError):
            path.unlink()
    return None


def _digest(path: Path) -> str:
    """As much of the checksum as a file's name needs."""
    return digest_of(path)[:32]


class RowEncoder:
    """Encodes one batch of texts; what ``Dataset.map`` calls."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._special = special_ids(tokenizer)

    def __call__(self, batch: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """One row per text, in order; texts with and without a pair may be mixed."""
        texts, pairs = batch["text"], batch["pair"]
        rows: list[Any] = [None] * len(texts)
        for paired in (False, True):
            where = [index for index, pair in enumerate(pairs) if (pair is not None) == paired]
            if where:
                chosen = [texts[index] for index in where]
                seconds = [pairs[index] for index in where] if paired else None
                for index, row in zip(where, self._rows(chosen, seconds), strict=True):
                    rows[index] = row
        ids, ordinary, types, cut = (list(column) for column in zip(*rows, strict=True))
        return {"ids": ids, "ordinary": ordinary, "types": types, "cut": cut}

    def _rows(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> Iterator[tuple[list[int], list[bool], list[int], bool]]:
        encoded = self._tokenizer(
            texts,
            pairs,
            truncation="longest_first",
            max_length=self._max_length,
            return_attention_mask=False,
            return_special_tokens_mask=True,
            verbose=False,
        )
        all_types = encoded.get("token_type_ids") or [[]] * len(texts)
        for ids, special, types, cut in zip(
            encoded["input_ids"],
            encoded["special_tokens_mask"],
            all_types,
            self._cut(encoded, texts, pairs),
            strict=True,
        ):
            # The mask marks what the template added; a "[SEP]" in the text itself is special too.
            ordinary = [
                not mark and token not in self._special
                for token, mark in zip(ids, special, strict=True)
            ]
            yield ids, ordinary, types, cut

    def _cut(self, encoded: Any, texts: Sequence[str], pairs: Sequence[str] | None) -> list[bool]:
        if encoded.encodings is not None:
            return [bool(encoding.overflowing) for encoding in encoded.encodings]
        # Tokenizers written in Python do not report truncation.
        whole = self._tokenizer(texts, pairs, return_attention_mask=False, verbose=False)
        return [len(ids) > self._max_length for ids in whole["input_ids"]]


def _clean(text: str | None, report: ReadReport) -> str | None:
    if text is None or text.isascii():
        return text
    clean = well_formed(text)
    if clean != text:
        report.add("text with half a surrogate pair, replaced by U+FFFD", repr(clean[:40]))
    return clean


def _fingerprint(texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    """Hash of everything that the token ids depend on."""
    parts = [
        _CONTENT,
        texts.digest,
        max_length,
        tokenizer_digest(tokenizer),
        sorted(special_ids(tokenizer)),
        tokenizers.__version__,
        transformers.__version__,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]
