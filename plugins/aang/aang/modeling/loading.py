"""Models and tokenizers from folders or from the hub, with errors that say what to do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from huggingface_hub.utils.tqdm import progress_bar_states
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from aang.corpora.places import refuse_other_folders
from aang.modeling.whole_model import refuse_untrained_classifier
from aang.task_types.task_type import Pipeline
from aang_core.errors import AangError, ModelError
from aang_core.turns import generators_kept, loading_turn

CLASSES: Mapping[Pipeline, Any] = {
    "text-classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
}
"""The transformers class of the models of a pipeline."""

_ENCODERS = "a masked-LM encoder, such as roberta-base, microsoft/deberta-v3-small or all-MiniLM"


def load_tokenizer(source: str, *, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub name, which pads on the right.

    Args:
        source: folder or hub name.
        trust_remote_code: whether to run the Python code that comes with it.

    Raises:
        ModelError: the tokenizer is missing or cannot be loaded.
    """
    with loading(source, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, trust_remote_code=trust_remote_code
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
    with loading(source, "configuration"):
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
    # Missing weights are drawn at random before they are refused.
    with loading(source, "model"), generators_kept():
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code)
        of_tokens = "ForTokenClassification" in " ".join(config.architectures or ())
        auto = CLASSES["token-classification" if of_tokens else "text-classification"]
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


def load_weights(
    auto: Any, source: str, config: PreTrainedConfig, trust_remote_code: bool
) -> tuple[PreTrainedModel, set[str], set[str]]:
    """A model, and the names of its parameters that ``source`` lacks, or has in another shape."""
    # By default transformers uses torch's fused attention if the model supports it, else eager.
    model, info = auto.from_pretrained(
        source,
        config=config,
        dtype=torch.float32,
        trust_remote_code=trust_remote_code,
        output_loading_info=True,
        # The end task's head in the folder may be for another number of classes.
        ignore_mismatched_sizes=auto is not AutoModelForMaskedLM,
    )
    return model, set(info["missing_keys"]), {name for name, *_ in info["mismatched_keys"]}


def refuse_decoders(source: str, config: PreTrainedConfig) -> None:
    """Refuse a model that is not a plain encoder.

    Raises:
        ModelError: it has a decoder, or is one; the message says what to give instead.
    """
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"model {source!r} is an encoder-decoder ({config.model_type}); give {_ENCODERS}"
        )
    own_code = "AutoModelForMaskedLM" in (getattr(config, "auto_map", None) or {})
    encodes = own_code or type(config) in AutoModelForMaskedLM._model_mapping
    if not encodes and type(config) in AutoModelForCausalLM._model_mapping:
        raise ModelError(
            f"model {source!r} is a generative language model ({config.model_type}) and has no "
            f"masked-LM head; give {_ENCODERS}"
        )


def longest_row(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    stored: PreTrainedConfig | None = None,
) -> int:
    """The largest number of tokens that both the model and its tokenizer take.

    RoBERTa and its relatives have a position for padding and count from the next one, so they take
    fewer tokens than they have positions.

    Args:
        model: an encoder or a classifier.
        tokenizer: its tokenizer.
        stored: the content of its ``config.json``, for a training that may use longer texts than
            the one that the model comes from.
    """
    most = max(tokenizer.model_max_length, getattr(stored, "encoder_max_length", 0))
    positions: int | None = getattr(model.config, "max_position_embeddings", None)
    # Models without a limit have no such field, or a negative number there (XLNet).
    if positions is None or positions < 0:
        return most
    of_padding: list[int] = [
        module.padding_idx
        for name, module in model.named_modules()
        if name.rpartition(".")[2] == "position_embeddings"
        and getattr(module, "padding_idx", None) is not None
    ]
    return min(positions - max(of_padding, default=-1) - 1, most)


@contextmanager
def loading(source: str, what: str) -> Iterator[None]:
    """Load from a folder or from the hub in the block, and turn any error into a ModelError.

    Args:
        source: folder or hub name.
        what: what is loaded, such as ``tokenizer``.
    """
    refuse_other_folders(source)
    try:
        with quiet():
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
def quiet() -> Iterator[None]:
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


@contextmanager
def no_model_bars() -> Iterator[None]:
    """Hide the bars of ``transformers`` and ``huggingface_hub`` in the block.

    Their switches hold for the whole process.
    """
    # The switch of transformers also sets those of huggingface_hub.
    shown, of_hub = transformers_logging.is_progress_bar_enabled(), dict(progress_bar_states)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()
        progress_bar_states.clear()
        progress_bar_states.update(of_hub)
