"""A small causal language model, trained in seconds on a few hundred texts."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel, PreTrainedTokenizerFast

_END = "<|end|>"
_VOCABULARY = 2000
_BATCH = 16
_IGNORED = -100
"""The label that the loss ignores."""


def train_small_lm(
    texts: Sequence[str], max_tokens: int, *, steps: int, lr: float = 2e-3
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A two-layer GPT-2, 128 wide, and its byte-level BPE; draws from torch's global generator."""
    tokenizer = _tokenizer(texts)
    end = tokenizer.vocab[_END]
    rows = [[end, *tokenizer(text)["input_ids"][: max_tokens - 1], end] for text in texts]
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=max_tokens + 1,
            n_embd=128,
            n_layer=2,
            n_head=4,
            bos_token_id=end,
            eos_token_id=end,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps + 1)
    model.train()
    for _ in range(steps):
        chosen = torch.randint(len(rows), (_BATCH,)).tolist()
        ids, labels = _padded([rows[i] for i in chosen], end)
        logits = model(input_ids=ids).logits[:, :-1]
        loss = cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=_IGNORED)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    return model, tokenizer


def _tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=[_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=_END, eos_token=_END, pad_token=_END
    )


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Ids ``[B, T]``, and labels that ignore padding; causal models see no later token."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    real = torch.arange(longest) < lengths[:, None]
    return ids, ids.masked_fill(~real, _IGNORED)
