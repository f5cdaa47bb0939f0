"""What AANG needs from a tokenizer: its special tokens, vocabulary, offsets and identity."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from aang.task_types.task_type import Offsets
from aang.task_types.words import is_unspaced, letter_runs
from aang_core.errors import ModelError
from aang_core.objectives.stages.rows import Vocabulary

_NOT_OF_IDS = frozenset(
    {
        *("name_or_path", "is_local", "local_files_only", "cache_dir", "token", "_commit_hash"),
        *("model_max_length", "padding_side", "chat_template", "trust_remote_code", "auto_map"),
    }
)
"""Arguments of a tokenizer that only say where it is from, or that no token id depends on."""


_LOOKED_AT = 10_000
"""Tokens that are searched for one of letters only; a vocabulary with letters has many."""

_NAMED = ("cls", "sep", "bos", "eos", "pad")
"""Tokens that stand around texts, by transformers' names."""


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of all tokens that do not stand for text, including those added later."""
    added = tokenizer.added_tokens_decoder.items()
    return frozenset(tokenizer.all_special_ids) | {
        number for number, token in added if token.special
    }


def vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """The tokenizer's tokens, as primitives see them.

    Raises:
        ModelError: the tokenizer has no mask token.
    """
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"{name_of(tokenizer)}: the tokenizer has no mask token, which masking needs. "
            "Use an encoder that was pre-trained with masking, such as BERT or RoBERTa, or add "
            "the token with tokenizer.add_special_tokens({'mask_token': '<mask>'}) and save it."
        )
    ordinary = sorted(set(tokenizer.get_vocab().values()) - special_ids(tokenizer))
    return Vocabulary(
        vocabulary_size(tokenizer),
        tokenizer.mask_token_id,
        torch.tensor(ordinary),
        decode=partial(_texts, tokenizer, ordinary),
        template=_template(tokenizer),
        unspaced=_begins_unspaced,
    )


def token_offsets(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Offsets:
    """Where the tokens of each text begin and end in it; (0, 0) for special tokens.

    Raises:
        ModelError: the tokenizer cannot tell.
    """
    if not tokenizer.is_fast:
        raise ModelError(
            f"{name_of(tokenizer)}: the tokenizer cannot say where in a text its tokens are, which "
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


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Fingerprint of everything that token ids depend on, except text and length of rows."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        definition = _of_python(tokenizer)
    else:
        definition = json.loads(backend.to_str())
        # State that the tokenizer's last call left behind.
        for state in ("truncation", "padding"):
            definition.pop(state, None)
    parts = [
        type(tokenizer).__name__,
        definition,
        # Decides whether the text "[SEP]" is one special token or the pieces of a word.
        tokenizer.split_special_tokens,
        sorted(tokenizer.special_tokens_map.items()),
        tokenizer.model_input_names,
        tokenizer.truncation_side,
    ]
    return _digest(json.dumps(parts, default=repr).encode())


def _of_python(tokenizer: PreTrainedTokenizerBase) -> Any:
    """The vocabulary, merges, sentencepiece model, and arguments such as ``do_lower_case``."""
    pieces = getattr(getattr(tokenizer, "sp_model", None), "serialized_model_proto", None)
    merges = getattr(tokenizer, "bpe_ranks", {})
    return [
        sorted(tokenizer.get_vocab().items()),
        sorted((rank, list(pair)) for pair, rank in merges.items()),
        None if pieces is None else _digest(pieces()),
        sorted((i, repr(token)) for i, token in tokenizer.added_tokens_decoder.items()),
        sorted(
            (name, json.dumps(value, default=repr, sort_keys=True))
            for name, value in tokenizer.init_kwargs.items()
            if name not in _NOT_OF_IDS and not name.endswith("_file")
        ),
    ]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _template(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the special tokens that the tokenizer puts around texts, and of padding."""
    encoded = tokenizer("a", "a", return_special_tokens_mask=True, verbose=False)
    marked = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
    # Not every tokenizer written in Python marks what it adds.
    named = (getattr(tokenizer, f"{name}_token_id") for name in _NAMED)
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
    texts = [""] * vocabulary_size(tokenizer)
    for token, both in zip(ordinary, decoded, strict=True):
        texts[token] = both.removeprefix(alone)
    return texts


def vocabulary_size(tokenizer: PreTrainedTokenizerBase) -> int:
    """One more than the largest id."""
    # A vocabulary with gaps has ids beyond its length.
    return max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=0))


def unknown_letters(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> float:
    """The share of the letters in texts that a tokenizer does not know; 0 without letters.

    Such a letter becomes the unknown token or, with a tokenizer that falls back to bytes, several
    tokens. Only letters count: an emoji of four tokens is not another language.
    """
    counts = Counter(letter for text in texts for letter in text if letter.isalpha())
    if not counts:
        return 0.0
    encoded = tokenizer([*counts], add_special_tokens=False, verbose=False)["input_ids"]
    ids = sorted({token for of in encoded for token in of})
    decoded = tokenizer.batch_decode([[token] for token in ids])
    bad = {t for t, s in zip(ids, decoded, strict=True) if "\ufffd" in s}
    bad |= {tokenizer.unk_token_id}
    unknown = (counts[c] for c, of in zip(counts, encoded, strict=True) if not bad.isdisjoint(of))
    return sum(unknown) / counts.total()


def name_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """What messages call it."""
    return tokenizer.name_or_path or type(tokenizer).__name__
