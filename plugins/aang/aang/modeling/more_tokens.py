"""A tokenizer that has more tokens than its encoder has embeddings."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from aang_core.errors import ModelError


def refuse_more_tokens(
    source: str, tokenizer: PreTrainedTokenizerBase, base: PreTrainedModel
) -> None:
    """Refuse a tokenizer whose tokens the encoder does not all know.

    Args:
        source: folder or hub name of both.
        tokenizer: the tokenizer.
        base: the encoder.

    Raises:
        ModelError: a token has no embedding.
    """
    # Typed as any module by transformers.
    rows = len(getattr(base.get_input_embeddings(), "weight", ()))
    token, number = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    if rows <= number:
        raise ModelError(
            f"--model {source}: its tokenizer has a token {token!r} with the number {number}, and "
            f"its encoder has embeddings for {rows} tokens only; they do not belong together. Use "
            "the tokenizer that the encoder was trained with, or resize the embeddings with "
            "resize_token_embeddings of transformers"
        )
