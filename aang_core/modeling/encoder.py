"""The shared encoder and its end-task classifier, loaded from and saved to transformers folders."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder
from transformers.utils import logging as transformers_logging

from aang_core.corpora.tokens import vocabulary
from aang_core.errors import AangError, ModelError
from aang_core.gradients import RowFreeMethod
from aang_core.modeling.heads import (
    EncoderHeads,
    LanguageModelHead,
    TransformersHead,
    set_dropout,
)
from aang_core.modeling.language_model import (
    lacks_language_model,
    refuse_decoders,
    tie_decoder,
)
from aang_core.task_types.single_label import SingleLabel
from aang_core.task_types.task_type import Architecture, HeadShape, TaskType


class EncoderBody(nn.Module):
    """θ, the parameters that all tasks share: a transformers encoder without its pooler.

    Args:
        base: the encoder.
    """

    def __init__(self, base: PreTrainedModel) -> None:
        super().__init__()
        self.base = base

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Hidden states ``[B, T, H]`` of token ids ``[B, T]``.

        Args:
            input_ids: ``[B, T]`` int64.
            attention_mask: ``[B, T]`` bool, the real tokens, or ``[B, T, T]`` bool, which tokens
                each token may attend to.
            **inputs: further arguments of the encoder, such as token types.
        """
        mask: Any = attention_mask
        if attention_mask.dim() == 3:
            mask = self._masks(attention_mask)
        output = self.base(input_ids=input_ids, attention_mask=mask, **inputs)
        hidden: Tensor = output.last_hidden_state
        return hidden

    def _masks(self, sees: Tensor) -> Tensor | dict[str, Tensor]:
        """``sees`` ``[B, T, T]`` in the form that the encoder's attention takes.

        A model whose layers have windows of different widths takes one mask for each kind of layer.
        """
        config = self.base.config
        if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
            return self._mask(sees)
        place = torch.arange(sees.shape[-1], device=sees.device)
        distance = (place.unsqueeze(0) - place.unsqueeze(1)).abs()
        near = sees & (distance <= config.sliding_window)
        # A token that sees only tokens outside the window still sees itself.
        alone = sees.any(dim=-1, keepdim=True) & ~near.any(dim=-1, keepdim=True)
        return {
            "full_attention": self._mask(sees),
            "sliding_attention": self._mask(near | (alone & (distance == 0))),
        }

    def _mask(self, sees: Tensor) -> Tensor:
        # A softmax over nothing is NaN, and NaN spreads in backward even from padding; let
        # padding see everything instead. Nobody sees padding, so it changes nothing else.
        empty = ~sees.any(dim=-1, keepdim=True)
        mask = (sees | empty).unsqueeze(1)
        if self.base.config._attn_implementation != "eager":
            return mask
        # Attention without a fused kernel adds the mask to the scores.
        dtype = next(self.parameters()).dtype
        return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)

    def save_memory(self) -> None:
        """Store only the inputs of each layer, and recompute the rest in the backward pass.

        Raises:
            ModelError: transformers does not support this for the architecture.
        """
        try:
            self.base.activation_checkpointing_enable()
        except ValueError as error:
            raise ModelError(
                f"--save-memory: {type(self.base).__name__} cannot recompute its layers; leave "
                "the option out, or give --micro-batch-size"
            ) from error

    def pack(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """Concatenate the rows of several batches, padded to the longest.

        See :class:`aang_core.gradients.PacksRows`.
        """
        tokens = max(part["input_ids"].shape[1] for part in inputs)
        three = any(part["attention_mask"].dim() == 3 for part in inputs)
        names = dict.fromkeys(name for part in inputs for name in part)
        return {
            name: torch.cat([_widened(part[name], tokens, three) for part in inputs])
            for name in names
        }

    def unpack(self, features: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Hidden states of one batch's rows, cut to its own number of tokens."""
        return features[:, : inputs["input_ids"].shape[1]]

    def row_free_methods(self) -> list[RowFreeMethod]:
        """MPNet's position biases, which every row shares.

        See :class:`aang_core.gradients.HasRowFreeMethods`.
        """
        return [
            RowFreeMethod(module, "compute_position_bias", module.relative_attention_bias)
            for module in self.modules()
            if isinstance(module, MPNetEncoder)
        ]


def _widened(values: Tensor, tokens: int, three: bool) -> Tensor:
    """Pad with zeros, which mean padding in a mask and are masked elsewhere.

    Args:
        values: ``[B, T, ...]``.
        tokens: the width to pad to.
        three: whether to turn masks ``[B, T]`` into ``[B, T, T]``.
    """
    missing = tokens - values.shape[1]
    if values.dim() == 2 and values.dtype == torch.bool and three:
        values = values.unsqueeze(1).expand(-1, values.shape[1], -1)
    if missing == 0:
        return values
    return functional.pad(values, (0, missing) * (values.dim() - 1))


@dataclass(frozen=True)
class TextModel:
    """An encoder that is ready to be trained.

    Attributes:
        tokenizer: the encoder's tokenizer.
        body: the part that all tasks share.
        classifier: the end task's head.
        heads: makes further heads.
        max_length: longest row that the encoder takes, in tokens.
        fresh_language_model: whether the folder had no LM head, so that this one is untrained.
        tied_decoder: whether that head decodes with the word embeddings.
    """

    tokenizer: PreTrainedTokenizerBase
    body: EncoderBody
    classifier: TransformersHead
    heads: EncoderHeads
    max_length: int
    fresh_language_model: bool = False
    tied_decoder: bool = True

    def save(self, folder: Path) -> None:
        """Save an ordinary transformers folder of the end task's model, with its tokenizer."""
        with _quiet():
            self.classifier.put_on(self.body.base).save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def save_language_model(self, folder: Path, head: nn.Module) -> None:
        """Save an ordinary masked-LM folder of the body and ``head``, with the tokenizer.

        Raises:
            ModelError: ``head`` is not a language-model head.
        """
        if not isinstance(head, LanguageModelHead):
            raise ModelError(f"{type(head).__name__} is not a language-model head; cannot save it")
        with _quiet():
            head.head.put_on(self.body.base).save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def load_tokenizer(source: str, *, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub name.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: the tokenizer is missing or cannot be loaded.
    """
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, trust_remote_code=trust_remote_code
        )
        return tokenizer


def load_classifier(source: str, *, trust_remote_code: bool = False) -> PreTrainedModel:
    """A trained classifier of texts or of tokens, in evaluation mode.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: ``source`` is not a classifier.
    """
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "model"):
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
        architectures = " ".join(config.architectures or ())
        over_tokens = "ForTokenClassification" in architectures
        kind: Architecture = "token-classification" if over_tokens else "sequence-classification"
        model: PreTrainedModel = _CLASSES[kind].from_pretrained(
            source, trust_remote_code=trust_remote_code
        )
        return model


def load_text_model(
    source: str,
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[str],
    *,
    from_scratch: bool = False,
    share_decoder: bool = True,
    dropout: float | None = None,
    head_dropout: float | None = None,
    trust_remote_code: bool = False,
    task_type: TaskType | None = None,
) -> TextModel:
    """Load an encoder with a head for the end task and, if it has one, its LM head.

    Args:
        source: folder or hub name.
        tokenizer: the encoder's tokenizer.
        labels: the classes, in the order of their ids.
        from_scratch: use only the configuration, and initialise the weights at random from torch's
            generator.
        share_decoder: whether all language-model heads share one decoder.
        dropout: dropout probability everywhere in the model; None keeps the model's own.
        head_dropout: dropout probability of classification heads and token regression; None keeps
            the model's own.
        trust_remote_code: whether to run the Python code that comes with it.
        task_type: the kind of end task, which says what its head is; None for a single-label task.

    Raises:
        ModelError: ``source`` is not a model, or one that AANG cannot use as an encoder.
    """
    task_type = task_type or SingleLabel(tuple(labels))
    _refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "model"):
        config = _configuration(source, task_type.head, dropout, trust_remote_code)
        (classifier, _), (language_model, missing) = (
            _load(auto, source, config, from_scratch, trust_remote_code)
            for auto in (_CLASSES[task_type.head.architecture], AutoModelForMaskedLM)
        )
    base = cast(PreTrainedModel, classifier.base_model)
    fresh = lacks_language_model(language_model, missing)
    if fresh and not from_scratch:
        tie_decoder(language_model, missing)
    # get_output_embeddings() returns whatever module holds the decoder, untyped.
    decoder: Any = language_model.get_output_embeddings()
    tied = decoder.weight is language_model.get_input_embeddings().weight
    head = TransformersHead(classifier)
    if head_dropout is not None:
        set_dropout(head, head_dropout)
    language_model_head = TransformersHead(language_model)
    if tied:
        decoder.weight = base.get_input_embeddings().weight
    return TextModel(
        tokenizer=tokenizer,
        body=EncoderBody(base),
        classifier=head,
        heads=EncoderHeads(
            head,
            language_model_head,
            # Cached, so that the tokens are decoded only once.
            cache(partial(vocabulary, tokenizer)),
            losses=task_type.losses,
            over_rows=partial(_row_head, config) if task_type.reads_every_token else None,
            share_decoder=share_decoder,
            dropout=head_dropout,
        ),
        max_length=_positions(config, tokenizer),
        fresh_language_model=fresh,
        tied_decoder=tied,
    )


_CLASSES: Mapping[Architecture, Any] = {
    "sequence-classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
}


def _row_head(config: PreTrainedConfig) -> TransformersHead:
    """A head that classifies rows, for a model whose own head classifies tokens."""
    with _quiet():
        return TransformersHead(AutoModelForSequenceClassification.from_config(config))


def _configuration(
    source: str, head: HeadShape, dropout: float | None, trust_remote_code: bool
) -> PreTrainedConfig:
    names = dict(enumerate(head.outputs))
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        source,
        num_labels=len(names),
        problem_type=head.problem_type,
        id2label=names,
        label2id={name: i for i, name in names.items()},
        trust_remote_code=trust_remote_code,
    )
    refuse_decoders(source, config)
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


def _load(
    auto: Any,
    source: str,
    config: PreTrainedConfig,
    from_scratch: bool,
    trust_remote_code: bool,
) -> tuple[PreTrainedModel, Collection[str]]:
    """A model, and the names of its parameters that ``source`` lacks."""
    # By default transformers uses torch's fused attention if the model supports it, else eager.
    if from_scratch:
        model: PreTrainedModel = auto.from_config(
            config, dtype=torch.float32, trust_remote_code=trust_remote_code
        )
        return model, ()
    model, info = auto.from_pretrained(
        source,
        config=config,
        dtype=torch.float32,
        trust_remote_code=trust_remote_code,
        output_loading_info=True,
    )
    return model, info["missing_keys"]


def _positions(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Number of tokens that the model takes.

    RoBERTa and its relatives count positions from ``pad_token_id`` + 1 and so take fewer.
    """
    positions = int(getattr(config, "max_position_embeddings", tokenizer.model_max_length))
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"}:
        positions -= int(config.pad_token_id or 0) + 1
    return min(positions, tokenizer.model_max_length)


def _refuse_other_folders(source: str) -> None:
    folder = Path(source)
    if folder.is_file():
        raise ModelError(f"--model {source}: is a file; give the folder that contains config.json")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(f"--model {source}: is not a model folder, it has no config.json")


@contextmanager
def _clear_errors(source: str, what: str) -> Iterator[None]:
    try:
        yield
    except (AangError, MemoryError):
        raise
    # For a damaged file tokenizers raises a bare Exception, safetensors and pickle raise errors of
    # their own, and a configuration's class raises whatever its code runs into.
    except Exception as error:
        reason = str(error).strip().splitlines()
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"--model {source}: its {what} comes with Python code of its own, which runs "
                "only with --trust-remote-code. Read the code first, or use another model"
            ) from error
        raise ModelError(
            f"--model {source}: cannot load its {what}: {reason[0] if reason else error!r}. "
            "Give a folder or hub name of a masked-LM encoder such as roberta-base"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' list of new weights: a new classification head is what we want."""
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
