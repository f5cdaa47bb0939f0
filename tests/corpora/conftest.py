"""Tokenizers of the two families, made here of a few sentences, and the real data."""

from pathlib import Path

import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from benchmarks.small_task import wordpiece_vocabulary

SENTENCES = (
    "The parser reads a sentence and returns a tree.",
    "We train an encoder on unlabelled text of the domain.",
    "Auxiliary objectives help when labelled examples are few.",
    "Masked tokens are predicted from both sides of the sentence.",
    "A generator draws random tokens; the seed fixes the run.",
)


@pytest.fixture(scope="session")
def bert() -> PreTrainedTokenizerFast:
    """WordPiece with token types, as BERT has it."""
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    texts = [normalizer.normalize_str(sentence) for sentence in SENTENCES]
    words = [word for text in texts for word, _ in splitter.pre_tokenize_str(text)]
    vocabulary = wordpiece_vocabulary(words, 200)
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@pytest.fixture(scope="session")
def roberta() -> PreTrainedTokenizerFast:
    """Byte-level BPE without token types, as RoBERTa has it."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The data sets that developers have beside the repository; users' clones have none."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist")
    return folder
