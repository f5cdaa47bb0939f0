"""The shared encoder and its end-task classifier, loaded from and saved to transformers folders."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from aang.corpora.tokenizer import vocabulary
from aang.modeling.body import EncoderBody, TrainedPart
from aang.modeling.end_task_head import StoredHead, end_task_head, forget_head
from aang.modeling.heads import EncoderHeads, LanguageModelHead, TransformersHead, set_dropout
from aang.modeling.loading import (
    CLASSES,
    load_weights,
    loading,
    longest_row,
    quiet,
    refuse_decoders,
)
from aang.modeling.trial import refuse_unusable
from aang.modeling.whole_model import refuse_misfits, refuse_more_tokens, refuse_untrained_body
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import TaskType
from aang_core.errors import ModelError

_DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"),
    *("attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_dropout"),
    *("classifier_dropout_prob", "seq_classif_dropout", "cls_dropout", "pooler_dropout"),
)
"""What configurations call probabilities of dropout."""


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
        head_origin: for people, whether the end task's head is the folder's and why; None if the
            folder has none.
        parts: what plug-ins have made of the body, in their order.

    Examples:
        >>> from aang import TextModel, TrainedPart
        >>> def train_biases_alone(model: TextModel) -> TrainedPart:
        ...     for name, parameter in model.body.named_parameters():
        ...         parameter.requires_grad_(name.endswith("bias"))
        ...     return TrainedPart("bias terms alone are trained")
    """

    tokenizer: PreTrainedTokenizerBase
    body: EncoderBody
    classifier: TransformersHead
    heads: EncoderHeads
    max_length: int
    fresh_language_model: bool = False
    tied_decoder: bool = True
    head_origin: str | None = None
    parts: tuple[TrainedPart, ...] = ()

    def save(
        self, folder: Path, max_length: int | None = None, *, reads_pairs: bool = False
    ) -> None:
        """Save an ordinary transformers folder of the end task's model, with its tokenizer.

        Args:
            folder: the folder.
            max_length: the tokens that texts were cut to, for the tokenizer to cut them to as well;
                None for as many as the encoder takes.
            reads_pairs: whether it was trained on pairs of texts.
        """
        length = min(self.max_length, max_length or self.max_length)
        model = self.classifier.put_on(self._plain_base())
        if length < self.max_length:
            # So that a training that begins with this model may use longer texts.
            model.config.encoder_max_length = self.max_length
        model.config.reads_pairs = reads_pairs
        with quiet():
            model.save_pretrained(folder)
            self._save_tokenizer(folder, length)

    def save_language_model(self, folder: Path, head: nn.Module) -> None:
        """Save an ordinary masked-LM folder of the body and ``head``, with the tokenizer.

        Raises:
            ModelError: ``head`` is not a language-model head.
        """
        if not isinstance(head, LanguageModelHead):
            raise ModelError(f"{type(head).__name__} is not a language-model head; cannot save it")
        with quiet():
            head.head.put_on(self._plain_base()).save_pretrained(folder)
            self._save_tokenizer(folder, self.max_length)

    def _save_tokenizer(self, folder: Path, max_length: int) -> None:
        # A fast tokenizer keeps how it last cut and padded, which depends on whether the token ids
        # came from the cache. transformers sets both for every call.
        if self.tokenizer.is_fast:
            self.tokenizer.backend_tokenizer.no_truncation()
            self.tokenizer.backend_tokenizer.no_padding()
        # Truncation in pipelines goes by this one.
        self.tokenizer.model_max_length = max_length
        self.tokenizer.save_pretrained(folder)

    def _plain_base(self) -> PreTrainedModel:
        """The encoder as transformers knows it."""
        base = self.body.base
        for part in reversed(self.parts):
            base = part.plain(base)
        return base


def load_text_model(
    source: str,
    tokenizer: PreTrainedTokenizerBase,
    labels: Sequence[str],
    *,
    from_scratch: bool = False,
    allow_missing_weights: bool = False,
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
        allow_missing_weights: initialise weights of the encoder that ``source`` lacks at random;
            without this they are an error.
        share_decoder: whether all language-model heads share one decoder.
        dropout: dropout probability everywhere in the model; None keeps the model's own.
        head_dropout: dropout probability of classification heads and token regression; None keeps
            the model's own.
        trust_remote_code: whether to run the Python code that comes with it.
        task_type: the kind of end task, which says what its head is; None for a single-label task.

    Raises:
        ModelError: ``source`` is not a model, lacks weights of the encoder, or is a model that AANG
            cannot use as an encoder, because it ignores attention masks, for instance.
    """
    task_type = task_type or SingleLabel(tuple(labels))
    auto = CLASSES[task_type.pipeline]
    with loading(source, "model"):
        stored = PreTrainedConfig.from_dict(PreTrainedConfig.get_config_dict(source)[0])
        config = _configuration(source, task_type, dropout, trust_remote_code)
        lacking, misfits, missing = set[str](), set[str](), set[str]()
        if from_scratch:
            classifier = _from_scratch(auto, config, trust_remote_code)
            language_model = _from_scratch(AutoModelForMaskedLM, config, trust_remote_code)
        else:
            classifier, lacking, misfits = load_weights(auto, source, config, trust_remote_code)
            refuse_misfits(source, classifier, misfits)
            language_model, missing, _ = load_weights(
                AutoModelForMaskedLM, source, config, trust_remote_code
            )
    base = cast(PreTrainedModel, classifier.base_model)
    refuse_more_tokens(source, tokenizer, base)
    untrained = _of_head(language_model, missing)
    _tie_decoder(language_model, untrained)
    # get_output_embeddings() returns whatever module holds the decoder, untyped.
    decoder: Any = language_model.get_output_embeddings()
    if len(getattr(decoder, "weight", ())) != config.vocab_size:
        raise ModelError(
            f"--model {source}: the language-model head of {type(language_model).__name__} has no "
            "decoder with a row per token, from which objectives could make theirs; use another "
            "encoder, such as roberta-base"
        )
    tied = decoder.weight is language_model.get_input_embeddings().weight
    if from_scratch:
        head, origin = TransformersHead(classifier), None
    else:
        head, origin = end_task_head(
            classifier,
            StoredHead(source, stored, lacking, misfits),
            task_type,
            partial(_fresh_head, auto, config, trust_remote_code),
        )
    if not allow_missing_weights:
        refuse_untrained_body(source, classifier.base_model_prefix, base, lacking)
    if head_dropout is not None:
        set_dropout(head, head_dropout)
    language_model_head = TransformersHead(language_model)
    if tied:
        decoder.weight = base.get_input_embeddings().weight
    body = EncoderBody(base)
    over_rows = partial(_fresh_head, AutoModelForSequenceClassification, config, trust_remote_code)
    longest = longest_row(base, tokenizer, stored)
    with quiet():
        refuse_unusable(source, body, (head, language_model_head), longest)
    return TextModel(
        tokenizer=tokenizer,
        body=body,
        classifier=head,
        heads=EncoderHeads(
            head,
            language_model_head,
            # Cached, so that the tokens are decoded only once.
            cache(partial(vocabulary, tokenizer)),
            losses=task_type.losses,
            over_rows=over_rows if task_type.reads_every_token else None,
            share_decoder=share_decoder,
            dropout=head_dropout,
        ),
        max_length=longest,
        fresh_language_model=any(parameter.dim() > 1 for parameter in untrained),
        tied_decoder=tied,
        head_origin=origin,
    )


def _fresh_head(auto: Any, config: PreTrainedConfig, trust_remote_code: bool) -> TransformersHead:
    """An untrained head of a kind of transformers class."""
    with quiet():
        return TransformersHead(_from_scratch(auto, config, trust_remote_code))


def _from_scratch(auto: Any, config: PreTrainedConfig, trust_remote_code: bool) -> PreTrainedModel:
    model: PreTrainedModel = auto.from_config(
        config, dtype=torch.float32, trust_remote_code=trust_remote_code
    )
    return model


def _configuration(
    source: str, task_type: TaskType, dropout: float | None, trust_remote_code: bool
) -> PreTrainedConfig:
    """The configuration of the encoder with the end task's head."""
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        source,
        num_labels=len(task_type.labels),
        problem_type=task_type.problem_type,
        id2label=dict(enumerate(task_type.labels)),
        label2id={name: i for i, name in enumerate(task_type.labels)},
        trust_remote_code=trust_remote_code,
    )
    forget_head(config)
    refuse_decoders(source, config)
    if hasattr(config, "classifier_pooling"):
        # AANG's classification reads the first token (AANG, section 6).
        config.classifier_pooling = "bos" if config.model_type == "eurobert" else "cls"
    for name in _DROPOUTS if dropout is not None else ():
        if hasattr(config, name):
            setattr(config, name, dropout)
    return config


def _of_head(model: PreTrainedModel, missing: Collection[str]) -> list[nn.Parameter]:
    """The parameters of the head of ``model`` that its folder lacks."""
    base = f"{model.base_model_prefix}."
    return [p for name, p in model.named_parameters() if name in missing and base not in name]


def _tie_decoder(model: PreTrainedModel, fresh: Sequence[nn.Parameter]) -> None:
    """Tie a decoder that is among ``fresh`` to the word embeddings, which are trained already."""
    decoder: Any = model.get_output_embeddings()
    words = model.get_input_embeddings().weight
    is_fresh = any(parameter is decoder.weight for parameter in fresh)
    if is_fresh and decoder.weight is not words and decoder.weight.shape == words.shape:
        decoder.weight = words
        model.config.tie_word_embeddings = True
