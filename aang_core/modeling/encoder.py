"""The shared encoder and its end-task classifier, loaded from and saved to transformers folders."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from aang_core.errors import ModelError
from aang_core.modeling.heads import EncoderHeads, TransformersHead


class EncoderBody(nn.Module):
    """θ, the parameters that every task shares: a transformers encoder without its pooler."""

    def __init__(self, base: PreTrainedModel) -> None:
        super().__init__()
        self.base = base

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Hidden states ``[B, T, H]`` of token ids ``[B, T]``.

        attention_mask: ``[B, T]`` bool, the real tokens, or ``[B, T, T]`` bool, who sees whom.
        """
        if attention_mask.dim() == 3:
            # A softmax over nothing is NaN, and NaN spreads in backward even from padding; let
            # padding see everything instead. Nobody sees padding, so it changes nothing else.
            empty = ~attention_mask.any(dim=-1, keepdim=True)
            attention_mask = (attention_mask | empty).unsqueeze(1)
        output = self.base(input_ids=input_ids, attention_mask=attention_mask, **inputs)
        hidden: Tensor = output.last_hidden_state
        return hidden


@dataclass(frozen=True)
class TextModel:
    """An encoder that is ready to be trained.

    body: shared by every task. classifier: the end task's head. heads: makes further ones.
    """

    tokenizer: PreTrainedTokenizerBase
    body: EncoderBody
    classifier: TransformersHead
    heads: EncoderHeads
    max_length: int

    def save(self, folder: Path) -> None:
        """Write an ordinary ``AutoModelForSequenceClassification`` folder with its tokenizer."""
        with _quiet():
            self.classifier.put_on(self.body.base).save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub name.

    Raises:
        ModelError: there is none.
    """
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source)
        return tokenizer


def load_classifier(source: str) -> PreTrainedModel:
    """A trained classifier, in evaluation mode.

    Raises:
        ModelError: ``source`` holds none.
    """
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "model"):
        model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(source)
        return model


def load_text_model(
    source: str,
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[str],
    *,
    from_scratch: bool = False,
    share_decoder: bool = True,
    dropout: float | None = None,
) -> TextModel:
    """Load an encoder with a classification head for ``labels`` and, if it has one, its LM head.

    from_scratch: take the configuration only and draw fresh weights from torch's generator.
    dropout: dropout probability everywhere in the model; None keeps the model's own.

    Raises:
        ModelError: ``source`` is no model, or one that AANG cannot use as an encoder.
    """
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "model"):
        config = _configuration(source, labels, dropout)
        classifier = _load(AutoModelForSequenceClassification, source, config, from_scratch)
        language_model = _load(AutoModelForMaskedLM, source, config, from_scratch)
    base = cast(PreTrainedModel, classifier.base_model)
    # get_output_embeddings() returns whatever module holds the decoder, untyped.
    decoder: Any = language_model.get_output_embeddings()
    tied = decoder.weight is language_model.get_input_embeddings().weight
    head = TransformersHead(classifier)
    language_model_head = TransformersHead(language_model)
    if tied:
        decoder.weight = base.get_input_embeddings().weight
    return TextModel(
        tokenizer=tokenizer,
        body=EncoderBody(base),
        classifier=head,
        heads=EncoderHeads(head, language_model_head, share_decoder=share_decoder),
        max_length=_positions(config, tokenizer),
    )


def _configuration(source: str, labels: Sequence[str], dropout: float | None) -> PreTrainedConfig:
    names = dict(enumerate(labels))
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        source,
        num_labels=len(labels),
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"model {source!r} is an encoder-decoder; AANG trains plain encoders")
    if hasattr(config, "classifier_pooling"):
        # AANG's classification reads the first token (AANG, section 6).
        config.classifier_pooling = "cls"
    if dropout is not None:
        for name in (
            *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"),
            *("attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_dropout"),
        ):
            if hasattr(config, name):
                setattr(config, name, dropout)
    return config


def _load(auto: Any, source: str, config: PreTrainedConfig, from_scratch: bool) -> PreTrainedModel:
    # sdpa is the implementation that takes a boolean [B, 1, T, T] mask as it is.
    options = {"attn_implementation": "sdpa", "dtype": torch.float32}
    if from_scratch:
        model: PreTrainedModel = auto.from_config(config, **options)
    else:
        model = auto.from_pretrained(source, config=config, **options)
    return model


def _positions(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """How many tokens the model takes.

    RoBERTa's kind counts positions from ``pad_token_id`` + 1, so it takes that many fewer.
    """
    positions = int(getattr(config, "max_position_embeddings", tokenizer.model_max_length))
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"}:
        positions -= int(config.pad_token_id or 0) + 1
    return min(positions, tokenizer.model_max_length)


def _refuse_other_folders(source: str) -> None:
    folder = Path(source)
    if folder.is_file():
        raise ModelError(f"--model {source}: is a file; give the folder that holds config.json")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(f"--model {source}: is no model folder, it holds no config.json")


@contextmanager
def _clear_errors(source: str, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"--model {source}: cannot load its {what}: {reason[0] if reason else error!r}. "
            "Give a folder or hub name of a masked-LM encoder such as roberta-base"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' list of fresh weights: a fresh classification head is what we want."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    was_enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)
        if was_enabled:
            transformers_logging.enable_progress_bar()
