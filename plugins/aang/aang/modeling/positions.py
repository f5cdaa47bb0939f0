"""How many tokens a row may have."""

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


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
    most = tokenizer.model_max_length
    of_encoder = getattr(stored, "encoder_max_length", None)
    if type(of_encoder) is int:
        most = max(most, of_encoder)
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
