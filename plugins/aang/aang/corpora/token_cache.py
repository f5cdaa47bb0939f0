"""Tokenises texts once and caches the ids under a hash of everything they depend on."""

import hashlib
import json
import logging
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import tokenizers
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from aang.corpora.cache import make_folder
from aang.corpora.tokenizer import special_ids, tokenizer_digest
from aang_core.storage.durable import digest_of, writing

_CONTENT = 4
"""Increase when what is stored or its fingerprint changes, so that older files are not used."""

_BATCH = 1000

_log = logging.getLogger(__name__)

Texts = Sequence[tuple[str, str | None]]
"""Each text with the second one of its pair, if it has one."""


def encode(
    texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int, cache: Path | None
) -> dict[str, Tensor]:
    """Token ids of all texts, from the cache if possible, otherwise tokenised and cached.

    Args:
        texts: the N texts; some may have a second one.
        tokenizer: the encoder's tokenizer.
        max_length: longest row, in tokens.
        cache: the cache folder; None for texts that will not be needed again.

    Returns:
        ``lengths``, int64 ``[N]``; ``cut``, bool ``[N]``, whether the text was longer; and for the
        tokens of all texts, one after the other: ``ids``, int32, ``ordinary``, bool, and ``types``,
        int8 (empty if the tokenizer makes none).

    Raises:
        ConfigError: the cache folder cannot be written to.
        StorageError: writing failed, as on a full disk.
    """
    if cache is None:
        return _encoded(texts, tokenizer, max_length)
    fingerprint = _fingerprint(texts, tokenizer, max_length)
    folder = cache / "tokens"
    # The name of a file has the checksum of its content, so that both appear at once.
    for path in sorted(folder.glob(f"{fingerprint}.*.safetensors")):
        # A broken cache is no reason to stop: it can be computed again.
        with suppress(SafetensorError, OSError):
            if path.name == _name(fingerprint, path):
                return load_file(path)
        _log.warning("%s: the cached tokens are damaged, and are made anew", path)
        with suppress(OSError):
            path.unlink()
    draft = make_folder(folder) / f".{fingerprint}.{secrets.token_hex(4)}"
    encoded = _encoded(texts, tokenizer, max_length)
    try:
        with writing(draft):
            save_file(encoded, draft)
            draft.rename(folder / _name(fingerprint, draft))
    finally:
        draft.unlink(missing_ok=True)
    return encoded


def _encoded(
    texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> dict[str, Tensor]:
    special = special_ids(tokenizer)
    parts = [
        encode_batch(texts[first : first + _BATCH], tokenizer, max_length, special)
        for first in range(0, len(texts), _BATCH)
    ]
    # Parts are dropped as they are joined, so that only one column is in memory twice.
    return {name: torch.cat([part.pop(name) for part in parts]) for name in list(parts[0])}


def encode_batch(
    texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int, special: Collection[int]
) -> dict[str, Tensor]:
    """The tokens of a few texts; see :func:`encode`."""
    inputs = [text if pair is None else (text, pair) for text, pair in texts]
    encoded = tokenizer(
        inputs,
        truncation="longest_first",
        max_length=max_length,
        return_attention_mask=False,
        return_special_tokens_mask=True,
        verbose=False,
    )
    if encoded.encodings is not None:
        cut = [bool(encoding.overflowing) for encoding in encoded.encodings]
    else:  # tokenizers written in Python do not report truncation
        whole = tokenizer(inputs, return_attention_mask=False, verbose=False)
        cut = [len(ids) > max_length for ids in whole["input_ids"]]
    joined = chain.from_iterable
    ids = [*joined(encoded["input_ids"])]
    marks = joined(encoded["special_tokens_mask"])
    # The mask marks what the template added; a "[SEP]" in the text itself is special too.
    ordinary = [not mark and token not in special for token, mark in zip(ids, marks, strict=True)]
    types = [*joined(encoded.get("token_type_ids", ()))]
    return {
        "lengths": torch.tensor([len(row) for row in encoded["input_ids"]]),
        "cut": torch.tensor(cut),
        "ids": torch.tensor(ids, dtype=torch.int32),
        "ordinary": torch.tensor(ordinary, dtype=torch.bool),
        "types": torch.tensor(types, dtype=torch.int8),
    }


def _name(fingerprint: str, file: Path) -> str:
    """The name of a file of tokens, with as much of its checksum as a name needs."""
    return f"{fingerprint}.{digest_of(file)[:32]}.safetensors"


def _fingerprint(texts: Texts, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    """Hash of everything that the token ids depend on."""
    digest = hashlib.sha256()
    for both in texts:
        digest.update(repr(both).encode())
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
