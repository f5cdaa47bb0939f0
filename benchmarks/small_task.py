"""A small real task and a tiny encoder, with which a whole run takes a second or two."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from aang_plugin_demo.documentation import load_demo_task
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class EncoderSize:
    """Size of the encoder's vocabulary and layers; ``positions`` is the most tokens of a text."""

    vocabulary: int = 300
    width: int = 16
    intermediate: int = 24
    positions: int = 32
    layers: int = 2
    heads: int = 2


def write_task(folder: Path) -> None:
    """Write ``train.jsonl``, ``dev.jsonl``, ``test.jsonl``, ``domain.txt`` and ``encoder/``."""
    write_files(folder, {"train": 48, "dev": 24, "test": 24}, domain=40)
    write_encoder(folder / "encoder", EncoderSize())


def write_files(folder: Path, rows: Mapping[str, int], *, domain: int) -> None:
    """Write the given numbers of rows of the demo's parts, with labels of train only, and of texts
    of its domain."""
    folder.mkdir(parents=True, exist_ok=True)
    demo = load_demo_task()
    labels = {example.label for example in demo.train[: rows["train"]]}
    for name, count in rows.items():
        known = [e for e in getattr(demo, name) if e.label in labels][:count]
        lines = [json.dumps({"text": e.text, "label": e.label}) for e in known]
        _write_lines(folder / f"{name}.jsonl", lines)
    _write_lines(folder / "domain.txt", demo.domain[:domain])


def write_encoder(folder: Path, size: EncoderSize) -> None:
    """Write a masked-LM BERT with dropout and a WordPiece tokenizer of demo texts."""
    normalizer, splitter = _splitting()
    texts = [normalizer.normalize_str(example.text) for example in load_demo_task().train]
    words = [word for text in texts for word, _ in splitter.pre_tokenize_str(text)]
    write_bert(folder, wordpiece_vocabulary(words, size.vocabulary), size)


def write_bert(folder: Path, pieces: Mapping[str, int], size: EncoderSize) -> None:
    """Write a masked-LM BERT with random weights, the same each time, and its tokenizer.

    Args:
        folder: where to.
        pieces: the ids of all pieces of words, those of :data:`SPECIAL` first.
        size: size of the layers; the vocabulary is that of ``pieces``.
    """
    tokenizer = Tokenizer(models.WordPiece(dict(pieces), unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = _splitting()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=size.positions,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.intermediate,
        max_position_embeddings=size.positions,
    )
    BertForMaskedLM(config).save_pretrained(folder)


def _splitting() -> tuple[normalizers.Normalizer, pre_tokenizers.PreTokenizer]:
    return normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()


def wordpiece_vocabulary(words: Sequence[str], size: int) -> dict[str, int]:
    """Ids of BERT's special tokens, of every character and of the most frequent words.

    The trainer of WordPiece breaks ties differently in every process, and different tokens would
    make each run of a test a different test.
    """
    characters = sorted({character for word in words for character in word})
    known = dict.fromkeys([*SPECIAL, *characters, *(f"##{c}" for c in characters)])
    counts = Counter(words)
    known |= dict.fromkeys(sorted(counts, key=lambda word: (-counts[word], word)))
    return {piece: i for i, piece in enumerate(list(known)[:size])}


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
