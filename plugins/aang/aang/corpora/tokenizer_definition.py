"""What turns texts into token ids, apart from versions: the same wherever a tokenizer lies."""

import hashlib
import json

from transformers import PreTrainedTokenizerBase

_NOT_OF_IDS = frozenset(
    {
        *("name_or_path", "is_local", "local_files_only", "cache_dir", "token", "_commit_hash"),
        *("model_max_length", "padding_side", "chat_template", "trust_remote_code", "auto_map"),
    }
)
"""Arguments of a tokenizer that only say where it is from, or that no token id depends on."""


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Fingerprint of all that token ids depend on, except the text and the length of rows."""
    parts = [
        type(tokenizer).__name__,
        _of_python(tokenizer) if _backend(tokenizer) is None else _of_rust(tokenizer),
        # The text "[SEP]" is one special token, or the pieces of a word.
        tokenizer.split_special_tokens,
        sorted(tokenizer.special_tokens_map.items()),
        tokenizer.model_input_names,
        tokenizer.truncation_side,
    ]
    return _digest(json.dumps(parts, default=repr).encode())


def _backend(tokenizer: PreTrainedTokenizerBase) -> object | None:
    return getattr(tokenizer, "backend_tokenizer", None)


def _of_rust(tokenizer: PreTrainedTokenizerBase) -> object:
    definition = json.loads(tokenizer.backend_tokenizer.to_str())
    # State that the tokenizer's last call left behind.
    for state in ("truncation", "padding"):
        definition.pop(state, None)
    return definition


def _of_python(tokenizer: PreTrainedTokenizerBase) -> object:
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
