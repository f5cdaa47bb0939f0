"""What a model's folder lacks: weights, which transformers draws at random, and embeddings."""

from collections.abc import Collection

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from aang_core.errors import ModelError

_SHOWN = 3


def refuse_untrained_body(
    source: str, prefix: str, base: PreTrainedModel, missing: Collection[str]
) -> None:
    """Refuse an encoder if some of its weights would be random.

    Args:
        source: folder or hub name of the encoder.
        prefix: what the encoder is called in the model that was loaded.
        base: the encoder without its pooler, which belongs to the end task's head.
        missing: names in the whole model of the weights that ``source`` lacks.

    Raises:
        ModelError: weights of the encoder are among them.
    """
    own = [f"{prefix}.{name}" for name in base.state_dict()]
    lacking = [name for name in own if name in missing]
    if lacking:
        raise ModelError(
            f"--model {source}: {len(lacking)} of the {len(own)} weights of the encoder are not in "
            f"its folder and would be random: {_some(lacking)}. Its weights are of another model, "
            "or their names have changed: use the right ones. --allow-missing-weights trains from "
            "random ones, --from-scratch makes all of them random"
        )


def refuse_misfits(source: str, model: PreTrainedModel, misfits: Collection[str]) -> None:
    """Refuse weights of an encoder whose shapes are not those of its configuration.

    Args:
        source: folder or hub name of the encoder.
        model: the encoder with a head; the pooler belongs to the head.
        misfits: names of the weights that ``source`` has in another shape.

    Raises:
        ModelError: weights of the encoder are among them.
    """
    prefix = f"{model.base_model_prefix}."
    own = [n for n in misfits if n.startswith(prefix) and not n.startswith(f"{prefix}pooler.")]
    if own:
        raise ModelError(
            f"--model {source}: its weights do not have the shapes that its config.json says: "
            f"{_some(own)}. Use the weights and the config.json of one encoder"
        )


def refuse_untrained_classifier(
    source: str, model: PreTrainedModel, missing: Collection[str]
) -> None:
    """Refuse a classifier if some of its weights would be random.

    Args:
        source: folder or hub name of the classifier.
        model: the classifier.
        missing: names of the weights that ``source`` lacks.

    Raises:
        ModelError: it lacks any.
    """
    prefix = f"{model.base_model_prefix}."
    if head := [name for name in missing if not name.startswith(prefix)]:
        raise ModelError(
            f"{source}: has no trained classification head: {_some(head)} are not in its folder, "
            "and random ones would give random answers. Give the folder of a run or of a trained "
            "classifier; aang train --model makes one from an encoder"
        )
    if missing:
        raise ModelError(
            f"{source}: weights of the classifier are not in its folder: {_some(missing)}. Random "
            "ones would give random answers. Give the folder of a run or of a whole classifier"
        )


def refuse_more_tokens(
    source: str, tokenizer: PreTrainedTokenizerBase, base: PreTrainedModel
) -> None:
    """Refuse a tokenizer with tokens that the encoder does not know.

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


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
