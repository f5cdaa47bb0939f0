"""The shared encoder and its end-task classifier, loaded from and saved to transformers folders."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from aang.corpora.tokens import vocabulary
from aang.modeling.body import EncoderBody
from aang.modeling.end_task_head import StoredHead, end_task_head, forget_head
from aang.modeling.heads import EncoderHeads, LanguageModelHead, TransformersHead, set_dropout
from aang.modeling.language_model import lacks_language_model, refuse_decoders, tie_decoder
from aang.modeling.missing_weights import (
    refuse_misfits,
    refuse_untrained_body,
    refuse_untrained_classifier,
)
from aang.modeling.model_folder import refuse_giants, refuse_other_folders
from aang.modeling.more_tokens import refuse_more_tokens
from aang.modeling.positions import longest_row
from aang.modeling.trained_part import TrainedPart
from aang.modeling.trial import refuse_unusable
from aang.progress_bars import no_model_bars
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import Pipeline, TaskType
from aang_core.errors import AangError, ModelError
from aang_core.turns import generators_kept, loading_turn


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
        with _quiet():
            model.save_pretrained(folder)
            self._save_tokenizer(folder, length)

    def save_language_model(self, folder: Path, head: nn.Module) -> None:
        """Save an ordinary masked-LM folder of the body and ``head``, with the tokenizer.

        Raises:
            ModelError: ``head`` is not a language-model head.
        """
        if not isinstance(head, LanguageModelHead):
            raise ModelError(f"{type(head).__name__} is not a language-model head; cannot save it")
        with _quiet():
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


def load_tokenizer(source: str, *, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub name, which pads on the right.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: the tokenizer is missing or cannot be loaded.
    """
    refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, trust_remote_code=trust_remote_code
        )
    longest: object = tokenizer.model_max_length
    if isinstance(longest, bool) or not isinstance(longest, int | float) or not longest >= 1:
        raise ModelError(
            f"--model {source}: its tokenizer_config.json says model_max_length {longest!r:.40}, "
            "which is no number of tokens; correct it, such as to 512"
        )
    if tokenizer.padding_side != "right":
        # The head reads the first position, which must not be padding. `save_pretrained` writes
        # the side only if it is among `init_kwargs`.
        tokenizer.padding_side = tokenizer.init_kwargs["padding_side"] = "right"
    return tokenizer


def encoder_width(source: str, *, trust_remote_code: bool = False) -> int:
    """The hidden size of a model, from its configuration alone.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: its configuration is missing or cannot be loaded.
    """
    refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "configuration"):
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
        return int(config.hidden_size)


def load_classifier(source: str, *, trust_remote_code: bool = False) -> PreTrainedModel:
    """A trained classifier of texts or of tokens, in evaluation mode.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: ``source`` is not a classifier, lacks some of its weights, or reads the last
            position of a row, where AANG pads.
    """
    refuse_other_folders(source)
    # Weights that are missing are drawn before they are refused.
    with _quiet(), generators_kept(), _clear_errors(source, "model"):
        refuse_giants(source, PreTrainedConfig.get_config_dict(source)[0])
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
        of_tokens = "ForTokenClassification" in " ".join(config.architectures or ())
        auto = _CLASSES["token-classification" if of_tokens else "text-classification"]
        model: PreTrainedModel
        model, info = auto.from_pretrained(
            source, trust_remote_code=trust_remote_code, output_loading_info=True
        )
    refuse_untrained_classifier(source, model, info["missing_keys"])
    if getattr(config, "summary_type", None) == "last":
        raise ModelError(
            f"{source}: {type(model).__name__} reads the last position of a row, which is padding "
            "where texts of different length share a batch, because AANG pads on the right; "
            "predict with transformers' pipeline instead"
        )
    return model


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
            cannot use as an encoder, because it does not keep to attention masks, for instance.
    """
    task_type = task_type or SingleLabel(tuple(labels))
    refuse_other_folders(source)
    with _quiet(), _clear_errors(source, "model"):
        config, stored = _configuration(source, task_type, dropout, trust_remote_code)
        auto = _CLASSES[task_type.pipeline]
        classifier, lacking, misfits = _load(auto, source, config, from_scratch, trust_remote_code)
        refuse_misfits(source, classifier, misfits)
        language_model, missing, _ = _load(
            AutoModelForMaskedLM, source, config, from_scratch, trust_remote_code
        )
    base = cast(PreTrainedModel, classifier.base_model)
    refuse_more_tokens(source, tokenizer, base)
    fresh = lacks_language_model(language_model, missing)
    if fresh and not from_scratch:
        tie_decoder(language_model, missing)
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
    with _quiet():
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
        fresh_language_model=fresh,
        tied_decoder=tied,
        head_origin=origin,
    )


_CLASSES: Mapping[Pipeline, Any] = {
    "text-classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
}


def _fresh_head(auto: Any, config: PreTrainedConfig, trust_remote_code: bool) -> TransformersHead:
    """An untrained head of a kind of transformers class."""
    with _quiet():
        return TransformersHead(
            auto.from_config(config, dtype=torch.float32, trust_remote_code=trust_remote_code)
        )


def _configuration(
    source: str, task_type: TaskType, dropout: float | None, trust_remote_code: bool
) -> tuple[PreTrainedConfig, PreTrainedConfig]:
    """The configuration with the end task's head, and what the folder says of the head in it."""
    names = dict(enumerate(task_type.labels))
    content = PreTrainedConfig.get_config_dict(source)[0]
    refuse_giants(source, content)
    stored = PreTrainedConfig.from_dict(content)
    config: PreTrainedConfig = AutoConfig.from_pretrained(
        source,
        num_labels=len(names),
        problem_type=task_type.problem_type,
        id2label=names,
        label2id={name: i for i, name in names.items()},
        trust_remote_code=trust_remote_code,
    )
    forget_head(config)
    refuse_decoders(source, config)
    if hasattr(config, "classifier_pooling"):
        # AANG's classification reads the first token (AANG, section 6).
        config.classifier_pooling = "bos" if config.model_type == "eurobert" else "cls"
    if dropout is not None:
        for name in (
            *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"),
            *("attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_dropout"),
            *("classifier_dropout_prob", "seq_classif_dropout", "cls_dropout", "pooler_dropout"),
        ):
            if hasattr(config, name):
                setattr(config, name, dropout)
    return config, stored


def _load(
    auto: Any,
    source: str,
    config: PreTrainedConfig,
    from_scratch: bool,
    trust_remote_code: bool,
) -> tuple[PreTrainedModel, Collection[str], Collection[str]]:
    """A model, and the names of its parameters that ``source`` lacks, or has in another shape."""
    # By default transformers uses torch's fused attention if the model supports it, else eager.
    if from_scratch:
        model: PreTrainedModel = auto.from_config(
            config, dtype=torch.float32, trust_remote_code=trust_remote_code
        )
        return model, (), ()
    model, info = auto.from_pretrained(
        source,
        config=config,
        dtype=torch.float32,
        trust_remote_code=trust_remote_code,
        output_loading_info=True,
        # The end task's head in the folder may be for another number of classes.
        ignore_mismatched_sizes=auto is not AutoModelForMaskedLM,
    )
    return model, info["missing_keys"], {name for name, *_ in info["mismatched_keys"]}


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
    """Silence transformers' list of new weights: a new classification head is what we want.

    No other thread loads a model in the block.
    """
    with loading_turn(), no_model_bars():
        logger = transformers_logging.get_logger("transformers")
        before = logger.level
        transformers_logging.set_verbosity_error()
        try:
            yield
        finally:
            logger.setLevel(before)
