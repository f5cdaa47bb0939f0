"""A small real task and a tiny encoder, on which a whole run takes a second or two."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from aang_core.corpora.demo import load_demo_task

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_ROWS = {"train": 48, "dev": 24, "test": 24}
_DOMAIN = 40


def write_task(folder: Path) -> None:
    """``train.jsonl``, ``dev.jsonl``, ``test.jsonl``, ``domain.txt`` and the folder ``encoder``."""
    folder.mkdir(parents=True)
    demo = load_demo_task()
    labels = {example.label for example in demo.train[: _ROWS["train"]]}
    for name, rows in _ROWS.items():
        known = [e for e in getattr(demo, name) if e.label in labels][:rows]
        lines = [json.dumps({"text": e.text, "label": e.label}) for e in known]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    domain = "\n".join(demo.domain[:_DOMAIN]) + "\n"
    (folder / "domain.txt").write_text(domain, encoding="utf-8")
    _write_encoder(folder / "encoder", [example.text for example in demo.train])


def _write_encoder(folder: Path, texts: list[str]) -> None:
    """A two-layer masked-LM BERT, with dropout, and a WordPiece tokenizer of ``texts``."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=300, special_tokens=_SPECIAL)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=32,
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
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
    )
    BertForMaskedLM(config).save_pretrained(folder)
