"""Language models that write text, and how to sample from them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from aang.modeling.loading import longest_row, no_model_bars
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from aang_core import DataError, ModelError

_BATCH = 32
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_MASKED = ("ForMaskedLM", "ForPreTraining")

_END = "<|end|>"
_VOCABULARY = 2000
_ROWS = 16
_IGNORED = -100
"""The label that the loss ignores."""

GIBBS_ROUNDS = 7
"""Number of parts in which a masked model rewrites a text: about 15% each, as in its training."""


@dataclass(frozen=True)
class Sampling:
    """How to sample.

    Attributes:
        texts: number of texts.
        max_tokens: as in :class:`~aang_plugin_electra.neural_lm.NeuralLm`.
        temperature: as there.
        top_k: as there.
    """

    texts: int
    max_tokens: int
    temperature: float
    top_k: int


@dataclass(frozen=True)
class LanguageModel:
    """A model that can write text, and its tokenizer.

    Attributes:
        name: what messages call it.
        model: the model.
        tokenizer: its tokenizer.
        masked: whether it fills gaps instead of continuing from a start.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    masked: bool

    @classmethod
    def load(cls, source: str) -> "LanguageModel":
        """The model of a folder or hub name.

        Raises:
            ModelError: it is missing, or is neither a causal nor a masked language model.
        """
        try:
            config = AutoConfig.from_pretrained(source, trust_remote_code=False)
            kinds = config.architectures or []
            masked = any(kind.endswith(_MASKED) for kind in kinds)
            if config.is_encoder_decoder or not (
                masked or any(kind.endswith(_CAUSAL) for kind in kinds)
            ):
                raise ModelError(
                    f"neural-lm.model {source}: cannot generate text: it is "
                    f"{' and '.join(kinds) or 'of no declared kind'}, which has no language-model "
                    "head of its own. Give a causal or a masked language model, such as gpt2 or "
                    "roberta-base, or none to train a small one"
                )
            auto: Any = AutoModelForMaskedLM if masked else AutoModelForCausalLM
            with no_model_bars():
                model, info = auto.from_pretrained(
                    source, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
                )
            if missing := sorted(info["missing_keys"]):
                raise ModelError(
                    f"neural-lm.model {source}: {len(missing)} of its weights are not in its "
                    f"folder and would be random, such as {missing[0]}. Give a whole model, or "
                    "none to train a small one"
                )
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            reason = str(error).strip().splitlines()
            raise ModelError(
                f"neural-lm.model {source}: cannot be loaded: {reason[0] if reason else error!r}"
            ) from error
        return cls(source, model, tokenizer, masked)

    @classmethod
    def trained(
        cls, texts: Sequence[str], max_tokens: int, *, steps: int, seed: int
    ) -> "LanguageModel":
        """A small causal model, trained on ``texts``."""
        with _seeded(seed):
            model, tokenizer = train_small_lm(texts, max_tokens, steps=steps)
        return cls("the small model", model, tokenizer, masked=False)

    def sample(self, originals: Sequence[str], settings: Sampling, *, seed: int) -> list[str]:
        """Texts drawn with ``seed``; the state of torch's own generators does not change.

        Args:
            originals: the texts that a masked model rewrites, one after the other.
            settings: how to sample.
            seed: of the draws.

        Raises:
            DataError: the model writes only blank texts.
            ModelError: the tokenizer lacks the token to start from, or the mask.
        """
        device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
        self.model.to(device).eval()  # type: ignore[arg-type]
        texts: list[str] = []
        with _seeded(seed), torch.inference_mode():
            # A blank text is drawn again, a few times at most.
            for start in range(0, 5 * settings.texts, _BATCH):
                wanted = min(_BATCH, settings.texts - len(texts))
                if wanted <= 0:
                    break
                if self.masked:
                    chosen = [originals[(start + i) % len(originals)] for i in range(wanted)]
                    ids = self._rewritten(chosen, settings)
                else:
                    ids = self._continued(wanted, settings)
                decoded = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
                texts += [text for text in (" ".join(t.split()) for t in decoded) if text]
        if not texts:
            raise DataError(f"neural-lm: {self.name} writes only blank texts; use another model.")
        return texts

    def _continued(self, rows: int, settings: Sampling) -> Tensor:
        """Token ids ``[rows, T]`` of texts that continue the start token."""
        tokenizer = self.tokenizer
        first = tokenizer.bos_token_id
        first = tokenizer.eos_token_id if first is None else first
        if first is None:
            raise ModelError(
                f"neural-lm.model {self.name}: its tokenizer has neither a start nor an end token, "
                "so there is nothing to begin a text with"
            )
        padding = tokenizer.pad_token_id
        start = torch.full((rows, 1), first, device=self.model.device)
        ids: Tensor = self.model.generate(  # type: ignore[operator]
            start,
            attention_mask=torch.ones_like(start),
            do_sample=True,
            temperature=settings.temperature,
            top_k=settings.top_k,
            max_new_tokens=min(settings.max_tokens, longest_row(self.model, tokenizer) - 1),
            pad_token_id=first if padding is None else padding,
        )
        return ids

    def _rewritten(self, originals: Sequence[str], settings: Sampling) -> Tensor:
        """Token ids ``[B, T]`` of texts in which the model has sampled every token."""
        mask = self.tokenizer.mask_token_id
        if mask is None:
            raise ModelError(f"neural-lm.model {self.name}: its tokenizer has no mask token")
        encoded = self.tokenizer(
            list(originals),
            padding=True,
            truncation=True,
            max_length=min(settings.max_tokens, longest_row(self.model, self.tokenizer)),
            return_special_tokens_mask=True,
            return_tensors="pt",
        ).to(self.model.device)
        ids: Tensor = encoded["input_ids"].clone()
        ordinary = encoded["special_tokens_mask"] == 0
        special = torch.tensor(self.tokenizer.all_special_ids, device=ids.device)
        turn = torch.randint(GIBBS_ROUNDS, ids.shape).to(ids.device)
        for i in range(GIBBS_ROUNDS):
            gaps = ordinary & (turn == i)
            logits = self.model(
                input_ids=ids.masked_fill(gaps, mask), attention_mask=encoded["attention_mask"]
            ).logits[gaps]
            logits[:, special] = -torch.inf
            ids[gaps] = _drawn(logits / settings.temperature, settings.top_k)
        return ids


def _drawn(logits: Tensor, top_k: int) -> Tensor:
    """One token id ``[S]`` for each row of logits ``[S, V]``."""
    if 0 < top_k < logits.shape[1]:
        least = logits.topk(top_k, dim=1).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    drawn: Tensor = torch.multinomial(logits.softmax(dim=1), 1).squeeze(1)
    return drawn


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator, from which transformers samples, and restore its state."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def train_small_lm(
    texts: Sequence[str], max_tokens: int, *, steps: int, lr: float = 2e-3
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A two-layer GPT-2, 128 wide, and its byte-level BPE; draws from torch's global generator."""
    tokenizer = _tokenizer(texts)
    end = tokenizer.vocab[_END]
    found = [tokenizer(text)["input_ids"][: max_tokens - 1] for text in texts]
    rows = [torch.tensor([end, *ids, end]) for ids in found]
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
        chosen = torch.randint(len(rows), (_ROWS,)).tolist()
        labels = pad_sequence([rows[i] for i in chosen], True, _IGNORED)
        # A causal model sees no later token, so the padding id does not matter.
        logits = model(input_ids=labels.masked_fill(labels == _IGNORED, end)).logits[:, :-1]
        loss = cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=_IGNORED)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    return model, tokenizer


def _tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(
        texts, _VOCABULARY, min_frequency=0, special_tokens=[_END], show_progress=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer._tokenizer, bos_token=_END, eos_token=_END, pad_token=_END
    )
