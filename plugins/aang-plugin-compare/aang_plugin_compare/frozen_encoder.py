"""Features of texts from an encoder without any training, for a linear classifier."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from aang.assembly import predict
from aang.config import TrainConfig
from aang.corpora import tokenize
from aang.modeling import load_text_model, load_tokenizer
from torch import Tensor, nn

from aang_core import Example


class FrozenEncoder:
    """A pre-trained encoder; each text goes through it once, even if several draws contain it.

    Args:
        encoder: folder or hub name of the encoder.
        config: how it is loaded, and how many tokens texts are truncated to.
        device: the device it computes on.
    """

    def __init__(self, encoder: str, config: TrainConfig, device: torch.device) -> None:
        tokenizer = load_tokenizer(encoder, trust_remote_code=config.trust_remote_code)
        # This loads a classifier; only its body is used.
        model = load_text_model(
            encoder,
            tokenizer,
            ("0", "1"),
            from_scratch=config.from_scratch,
            allow_missing_weights=config.allow_missing_weights,
            trust_remote_code=config.trust_remote_code,
        )
        self._tokenizer = tokenizer
        self._max_length = min(config.max_length, model.max_length)
        self._body = _FirstAndMean(model.body).to(device)
        self._known: dict[tuple[str, str | None], Tensor] = {}
        self._seconds = 0.0

    @property
    def seconds_per_text(self) -> float:
        """Mean seconds per text."""
        return self._seconds / max(1, len(self._known))

    def __call__(self, examples: Sequence[Example]) -> Any:
        """Features of N texts: the hidden state of the first token, and the mean over tokens.

        Returns:
            A float32 array ``[N, 2, H]``.

        Raises:
            AangError: the tokenizer cannot be used.
        """
        new = {
            key: Example(*key)
            for key in ((e.text, e.text_pair) for e in examples)
            if key not in self._known
        }
        if new:
            begin = time.perf_counter()
            rows = tokenize(
                list(new.values()), self._tokenizer, max_length=self._max_length, cache=None
            )
            features = predict(self._body, rows)
            self._known.update(zip(new, features, strict=True))
            self._seconds += time.perf_counter() - begin
        found = torch.stack([self._known[e.text, e.text_pair] for e in examples])
        return found.unflatten(1, (2, -1)).float().numpy()


class _FirstAndMean(nn.Module):
    """The first token's hidden state and the mean over the real tokens, ``[B, 2·H]``."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, **inputs: Tensor) -> Tensor:
        hidden: Tensor = self.body(**inputs)
        real = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        return torch.cat([hidden[:, 0], mean], dim=1)
