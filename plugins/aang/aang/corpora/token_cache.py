"""Tokenises a source once and caches the ids under a hash of everything they depend on."""

import hashlib
import json
import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import tokenizers
import transformers
from transformers import PreTrainedTokenizerBase

from aang.corpora.cache import make_folder
from aang.corpora.text_files import well_formed
from aang.corpora.tokenizer import special_ids, tokenizer_digest
from aang_core.objectives.stages.data import Example, Label, ReadReport
from aang_core.storage.durable import digest_of, writing

_CONTENT = 3
"""Increase when what is stored or its fingerprint changes, so that older files are not used."""

_BATCH = 1000

_log = logging.getLogger(__name__)

_TEXTS = pa.schema({"text": pa.string(), "pair": pa.string()})
_ROWS = pa.schema(
    {
        "ids": pa.list_(pa.int32()),
        "ordinary": pa.list_(pa.bool_()),
        "types": pa.list_(pa.int8()),
        "cut": pa.bool_(),
    }
)


def collect(examples: Iterable[Example], report: ReadReport) -> tuple[pa.Table, list[Label | None]]:
    """The texts of a source in Arrow's memory, without a Python object for each, and its labels.

    Returns:
        A table with the columns ``text`` and ``pair`` (null for a single text), and the labels.
    """
    labels: list[Label | None] = []
    batches = []
    source = iter(examples)
    while some := list(islice(source, _BATCH)):
        texts = [_clean(example.text, report) for example in some]
        pairs = [_clean(example.text_pair, report) for example in some]
        batches.append(pa.RecordBatch.from_pydict({"text": texts, "pair": pairs}, _TEXTS))
        labels.extend(example.label for example in some)
    return pa.Table.from_batches(batches, _TEXTS), labels


def encode(
    texts: pa.Table, tokenizer: PreTrainedTokenizerBase, max_length: int, cache: Path | None
) -> pa.Table:
    """Token ids of all texts, from the cache if possible, otherwise tokenised and cached.

    Args:
        texts: the texts, from :func:`collect`.
        tokenizer: the encoder's tokenizer.
        max_length: longest row, in tokens.
        cache: the cache folder; None to tokenise in memory what will not be needed again.

    Returns:
        A table with the columns ``ids`` (list of int32), ``ordinary`` (list of bool), ``types``
        (list of int8, empty if the tokenizer makes none) and ``cut`` (bool, whether the text was
        longer).

    Raises:
        ConfigError: the cache folder cannot be written to.
        StorageError: writing failed, as on a full disk.
    """
    encoder = RowEncoder(tokenizer, max_length)
    if cache is None:
        return pa.Table.from_batches(map(encoder, texts.to_batches()), _ROWS)
    fingerprint = _fingerprint(texts, tokenizer, max_length)
    folder = cache / "tokens"
    # The name of a file has the checksum of its content, so that both appear at once.
    for path in sorted(folder.glob(f"{fingerprint}.*.arrow")):
        # A broken cache is no reason to stop: it can be computed again.
        with suppress(pa.ArrowException, OSError):
            if path.name == _name(fingerprint, path):
                return _opened(path)
        _log.warning("%s: the cached tokens are damaged, and are made anew", path)
        with suppress(OSError):
            path.unlink()
    draft = make_folder(folder) / f".{fingerprint}.{secrets.token_hex(4)}"
    try:
        with writing(draft):
            with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, _ROWS) as writer:
                for batch in texts.to_batches():
                    writer.write_batch(encoder(batch))
            path = draft.rename(folder / _name(fingerprint, draft))
    finally:
        draft.unlink(missing_ok=True)
    return _opened(path)


class RowEncoder:
    """Encodes batches of texts."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._special = special_ids(tokenizer)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One row per text, in order; texts with and without a pair may be mixed."""
        texts, pairs = (batch.column(name).to_pylist() for name in ("text", "pair"))
        rows: list[Any] = [None] * len(texts)
        for paired in (False, True):
            where = [index for index, pair in enumerate(pairs) if (pair is not None) == paired]
            if where:
                chosen = [texts[index] for index in where]
                seconds = [pairs[index] for index in where] if paired else None
                for index, row in zip(where, self._rows(chosen, seconds), strict=True):
                    rows[index] = row
        return pa.RecordBatch.from_pylist(rows, _ROWS)

    def _rows(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> Iterator[dict[str, object]]:
        encoded = self._tokenizer(
            texts,
            pairs,
            truncation="longest_first",
            max_length=self._max_length,
            return_attention_mask=False,
            return_special_tokens_mask=True,
            verbose=False,
        )
        if encoded.encodings is not None:
            cut = [bool(encoding.overflowing) for encoding in encoded.encodings]
        else:  # tokenizers written in Python do not report truncation
            whole = self._tokenizer(texts, pairs, return_attention_mask=False, verbose=False)
            cut = [len(ids) > self._max_length for ids in whole["input_ids"]]
        for i, (ids, special) in enumerate(
            zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
        ):
            # The mask marks what the template added; a "[SEP]" in the text itself is special too.
            ordinary = [
                not mark and token not in self._special
                for token, mark in zip(ids, special, strict=True)
            ]
            types = encoded["token_type_ids"][i] if "token_type_ids" in encoded else []
            yield {"ids": ids, "ordinary": ordinary, "types": types, "cut": cut[i]}


def _opened(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def _name(fingerprint: str, file: Path) -> str:
    """The name of a file of tokens, with as much of its checksum as a name needs."""
    return f"{fingerprint}.{digest_of(file)[:32]}.arrow"


def _clean(text: str | None, report: ReadReport) -> str | None:
    clean = None if text is None else well_formed(text)
    if clean != text:
        report.add("text with half a surrogate pair, replaced by U+FFFD", repr(clean)[:42])
    return clean


def _fingerprint(texts: pa.Table, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    """Hash of everything that the token ids depend on."""
    digest = hashlib.sha256()
    for batch in texts.to_batches():
        digest.update(repr(batch.to_pydict()).encode())
    parts = [
        _CONTENT,
        digest.hexdigest(),
        max_length,
        tokenizer_digest(tokenizer),
        sorted(special_ids(tokenizer)),
        tokenizers.__version__,
        transformers.__version__,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]
